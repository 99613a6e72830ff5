"""The import graph of the design, read from the code, lazy imports included."""

import ast
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HEAVY = {"torch", "transformers", "bitsandbytes", "gptqmodel", "torchao", "accelerate", "gguf", "huggingface_hub"}
# Modules of engines/ that the web process uses, and which must therefore import nothing heavy.
WEB_SIDE = {"playground.engines", "playground.engines.fleet", "playground.engines.worker", "playground.engines.options",
            "playground.engines.quiet", "playground.engines.refusal", "playground.engines.scripted"}


def modules():
    files = [ROOT / "app.py", *sorted((ROOT / "playground").rglob("*.py"))]
    names = {}
    for path in files:
        parts = list(path.relative_to(ROOT).with_suffix("").parts)
        names[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return names


def imports(name, path):
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            target = ".".join([*base, *(node.module.split(".") if node.module else [])])
            yield target
            yield from (f"{target}.{alias.name}" for alias in node.names)


GRAPH = {name: set(imports(name, path)) for name, path in modules().items()}
OWN = {name: {i for i in found if i in GRAPH} - {name} for name, found in GRAPH.items()}


def roots(name):
    return {i.split(".")[0] for i in GRAPH[name]}


def test_only_engines_and_the_offline_tool_import_torch_and_its_kin():
    for name in GRAPH:
        if not name.startswith(("playground.engines", "playground.distill")):
            assert not roots(name) & HEAVY, name


def test_the_web_side_of_engines_is_light_all_the_way_down():
    for name in WEB_SIDE:
        reached, todo = set(), [name]
        while todo:
            at = todo.pop()
            if at in reached:
                continue
            reached.add(at)
            todo += OWN[at]
        heavy = {at: roots(at) & HEAVY for at in reached if roots(at) & HEAVY}
        assert not heavy, f"{name} reaches {heavy}"


def test_only_the_page_imports_gradio_and_only_charts_imports_plotly():
    for name in GRAPH:
        if not name.startswith("playground.ui") and name != "app":
            assert "gradio" not in roots(name), name
        if not name.startswith("playground.charts"):
            assert "plotly" not in roots(name), name


def test_the_page_never_sees_an_engines_class():
    for name, found in OWN.items():
        if name.startswith("playground.ui"):
            assert not any(i.startswith("playground.engines") for i in found), name


def test_nothing_depends_on_the_offline_tool():
    for name, found in OWN.items():
        if not name.startswith("playground.distill"):
            assert not any(i.startswith("playground.distill") for i in found), name


def test_no_cycles():
    done, path = set(), []

    def visit(name):
        if name in path:
            raise AssertionError(f"cycle: {' -> '.join([*path[path.index(name):], name])}")
        if name not in done:
            path.append(name)
            for other in OWN[name]:
                if not name.startswith(f"{other}."):  # a package's own __init__ is no dependency of note
                    visit(other)
            done.add(path.pop())

    for name in OWN:
        visit(name)


def test_no_grab_bags_and_no_mutable_module_state():
    for name, path in modules().items():
        assert not re.search(r"(utils|helpers|common|misc)$", name), name
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, (ast.Assign, ast.AnnAssign)) and isinstance(node.value, (ast.List, ast.Set)):
                raise AssertionError(f"{name}:{node.lineno} is a mutable module-level value")
            if isinstance(node, ast.Global):
                raise AssertionError(f"{name}:{node.lineno} uses global")


def test_importing_the_app_brings_in_no_torch_and_starts_nothing():
    code = "import sys, app; bad = {'torch', 'transformers'} & set(sys.modules); sys.exit(str(bad) if bad else 0)"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
