// Ctrl+Enter compares, Escape leaves the presentation or stops, P and a button enter and leave it; a column's
// button enlarges it. Classes are set on what Gradio does not draw anew.
() => {
  const body = document.body;
  const present = on => { body.classList.toggle('presentation', on); scrollTo(0, 0); window.dispatchEvent(new Event('resize')); };  // charts fit anew
  document.addEventListener('keydown', event => {
    const typing = event.target.closest('input:not([type=radio], [type=checkbox], [type=range]), textarea, select, [contenteditable]');
    const press = id => { const button = document.querySelector(id); if (button && !button.disabled) button.click(); };
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) { event.preventDefault(); press('#compare'); }
    else if (event.key === 'Escape' && body.classList.contains('presentation')) present(false);
    else if (event.key === 'Escape') press('#stop');
    else if ((event.key === 'p' || event.key === 'P') && !typing && !event.ctrlKey && !event.metaKey && !event.altKey)
      present();
  });
  document.addEventListener('click', event => {
    if (event.target.closest('#present')) { present(); event.target.closest('#present').blur(); }
    const button = event.target.closest('.slot .focus');
    if (!button) return;
    const columns = document.querySelector('#columns'), column = [...columns.children].find(child => child.contains(button));
    const on = !column.classList.contains('focused');
    columns.querySelectorAll('.focused').forEach(other => other.classList.remove('focused'));
    columns.classList.toggle('has-focus', on);
    column.classList.toggle('focused', on);
  });
}
