// Plays a recorded comparison: all columns from their own starts, at true speed. Model text enters as text nodes only.
const SVG = 'http://www.w3.org/2000/svg', WINDOW_S = 2, WIDTH = 1000, HEIGHT = 180, FRAME_MS = 50;
const find = selector => element.querySelector(selector);
let data = null, tracks = [], end = 0, now = 0, speed = 1, playing = false, last = 0, frame = 0;

const make = (name, className, parent, text) => {
  const node = document.createElement(name);
  node.className = className;
  if (text !== undefined) node.textContent = text;
  parent.appendChild(node);
  return node;
};

function build() {
  data = props.value;
  cancelAnimationFrame(frame);
  const stage = find('.replay-columns'), lines = find('.replay-race');
  stage.replaceChildren();
  lines.replaceChildren();
  const empty = !data || !data.tracks;
  find('.replay').hidden = empty;
  if (empty) return;
  for (const [name, text] of Object.entries(data.words)) {
    const node = find(`[data-word="${name}"]`);
    if (node) { node.textContent = text; node.setAttribute('aria-label', text); }
  }
  find('.replay-title').textContent = data.title;
  find('.replay-prompt').textContent = data.prompt;
  find('.replay-machine').textContent = data.machine;
  const cards = find('.replay-summary');
  cards.replaceChildren();
  for (const card of data.summary) {
    const box = make('div', '', cards);
    box.style.setProperty('--slot', card.colour);
    make('span', '', box, card.question);
    make('b', '', box, card.name);
    make('span', '', box, card.value);
  }
  end = Math.max(...data.tracks.map(track => track.steps.at(-1)[0]));
  const most = Math.max(...data.tracks.map(track => track.steps.at(-1)[1]));
  tracks = data.tracks.map(track => {
    const column = make('article', 'replay-column', stage);
    column.style.setProperty('--slot', track.colour);
    make('h3', '', column, track.name);
    const rate = make('p', 'replay-rate', column);
    const status = make('p', 'replay-status', column);
    const bar = make('progress', '', column);
    bar.max = track.steps.at(-1)[1];
    bar.setAttribute('aria-label', track.name);
    const box = make('div', 'replay-answer', column);
    box.tabIndex = 0;
    const text = make('div', 'text', box);
    const line = document.createElementNS(SVG, 'polyline');
    line.setAttribute('stroke', track.colour);
    lines.appendChild(line);
    return {track, rate, status, bar, text, line, shown: 0, most};
  });
  find('.replay-scrub').max = end.toFixed(2);
  find('.replay-most').textContent = `${most} ${data.words.tokens}`;
  find('.replay-end').textContent = `${end.toFixed(1)} s`;
  show(data.autoplay ? 0 : end, true);
  play(data.autoplay);
}

// How many steps have arrived by a time.
function arrived(steps, time) {
  let low = 0, high = steps.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (steps[middle][0] <= time) low = middle + 1; else high = middle;
  }
  return low;
}

function append(parent, step) {
  const [, , text, drafted] = step;
  if (drafted) {
    make('span', 'drafted', parent, text.slice(0, drafted));
    if (text.length > drafted) parent.appendChild(document.createTextNode(text.slice(drafted)));
  } else parent.appendChild(document.createTextNode(text));
}

function show(time, again) {
  now = Math.min(time, end);
  for (const item of tracks) {
    const {track} = item, steps = track.steps, count = arrived(steps, now), done = count === steps.length;
    if (again || count < item.shown) { item.text.replaceChildren(); item.shown = 0; }
    for (; item.shown < count; item.shown++) append(item.text, steps[item.shown]);
    const ids = count ? steps[count - 1][1] : 0;
    const since = arrived(steps, Math.max(0, now - WINDOW_S)), before = since ? steps[since - 1] : null;
    let rate = null;
    if (done) rate = track.rate;
    else if (before && count > since) rate = (ids - before[1]) / Math.max(steps[count - 1][0] - before[0], 1e-6);
    else if (count > 1) rate = (ids - steps[0][1]) / Math.max(steps[count - 1][0] - steps[0][0], 1e-6);
    item.rate.textContent = rate === null ? '–' : `${rate.toFixed(1)} tok/s`;
    const state = done ? 'done' : count ? 'answering' : 'waiting';
    item.status.textContent = done ? `${data.words.done} · ${steps.at(-1)[0].toFixed(1)} s${track.note}` : data.words[state];
    item.status.parentNode.dataset.state = state;
    item.bar.value = ids;
    const points = ['0,' + HEIGHT];
    for (let i = 0; i < count; i++) points.push(`${steps[i][0] / end * WIDTH},${HEIGHT - steps[i][1] / item.most * HEIGHT}`);
    item.line.setAttribute('points', points.join(' '));
  }
  find('.replay-summary').classList.toggle('told', now >= end);
  find('.replay-scrub').value = now;
  find('.replay-clock').textContent = `${now.toFixed(1)} / ${end.toFixed(1)} s`;
}

function tick(stamp) {
  if (!playing || !element.isConnected) return;
  if (stamp - last >= FRAME_MS) {
    show(now + (stamp - last) / 1000 * speed);
    last = stamp;
  }
  if (now >= end) play(false); else frame = requestAnimationFrame(tick);
}

function play(on) {
  cancelAnimationFrame(frame);
  playing = Boolean(on);
  if (playing) document.body.classList.remove('live');
  const button = find('.replay-play');
  button.dataset.playing = playing;
  button.textContent = playing ? data.words.pause : data.words.play;
  button.setAttribute('aria-pressed', playing);
  if (!playing) return;
  if (now >= end) show(0, true);
  last = performance.now();
  frame = requestAnimationFrame(tick);
}

element.addEventListener('click', event => {
  if (event.target.closest('.replay-play')) play(!playing);
});
element.addEventListener('input', event => {
  if (event.target.matches('.replay-scrub')) { play(false); show(Number(event.target.value)); }
});
element.addEventListener('change', event => {
  if (event.target.matches('.replay-speed')) speed = Number(event.target.value);
});
// A comparison is about to run, perhaps on this very machine: what moves here would be in its numbers.
document.addEventListener('playground-run', () => { if (data && data.tracks) play(false); });
watch('value', build);
build();
