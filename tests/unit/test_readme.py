"""What the README says of the repository is so."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def tree():
    """Paths in the README's file tree."""
    block = next(b for b in re.findall(r"^```\w*\n(.*?)^```", README, re.S | re.M) if b.startswith("app.py"))
    paths, parents = set(), []
    for line in block.splitlines():
        name = line.split()[0]
        depth = (len(line) - len(line.lstrip())) // 2
        parents = [*parents[:depth], name]
        paths.add("".join(parents) if name.endswith("/") or depth else name)
    return paths


def test_the_file_tree_names_every_module_and_nothing_that_is_not_there():
    named = tree()
    for path in named:
        assert (ROOT / path).exists(), f"{path} is in the README's tree and not in the repository"
    modules = {str(p.relative_to(ROOT)) for kind in ("py", "js", "css") for p in (ROOT / "playground").rglob(f"*.{kind}") if p.name != "__init__.py"}
    assert modules <= named, f"missing in the README's tree: {sorted(modules - named)}"


def test_every_preset_and_every_quantization_is_told_of():
    from playground.quantization import QuantizationMethod

    for method in QuantizationMethod.__args__[1:]:
        assert f"`{method}`" in README, method


def test_pictures_and_commands_exist():
    for picture in re.findall(r"!\[[^]]*\]\(([^)]+)\)", README):
        assert (ROOT / picture).is_file(), picture
    for module in re.findall(r"python -m ([\w.]+)", README):
        place = module.replace(".", "/")
        assert (ROOT / f"{place}.py").is_file() or (ROOT / place / "__main__.py").is_file(), module
