"""Every shipped preset loads, and a broken one says where and what."""

import re
from pathlib import Path

import pytest

from playground.checks import ConfigError
from playground.config import differences
from playground.presets import DEFAULT_PRESET, PRESETS_FOLDER, find_preset, load_preset, load_presets

ROOT = Path(__file__).resolve().parents[2]
GOOD = 'title = "T"\n[base]\nmodel = "m"\n[[slots]]\nid = "a"\n'


def write(folder, text):
    path = folder / "mine.toml"
    path.write_text(text)
    return path


def test_shipped_presets_load_and_the_default_comes_first():
    presets = load_presets()
    assert list(presets)[0] == DEFAULT_PRESET
    assert {"five-ways", "kv-cache", "quantization", "speculation", "gpu-llama", "gpu-qwen"} <= set(presets)
    for name, preset in presets.items():
        assert preset.id == name and preset.title and preset.title_ko and preset.description and preset.description_ko


def test_the_default_preset_is_the_five_ways():
    assert [slot.id for slot in load_presets()[DEFAULT_PRESET].slots] == [
        "baseline", "kv-cache", "sdpa", "bnb-nf4", "draft-head",
    ]


@pytest.mark.parametrize("preset", load_presets().values(), ids=lambda p: p.id)
def test_each_slot_is_one_choice_away_from_an_earlier_one(preset):
    """A speculating slot changes two names for one choice: the speculation and what it drafts with."""
    for i, slot in enumerate(preset.slots[1:], 1):
        fewest = min(
            sum(name not in ("drafter", "exit_layer", "draft_head") for name, _, _ in differences(before, slot)) for before in preset.slots[:i]
        )
        assert fewest == 1, f"{preset.id}/{slot.id} differs in {fewest} choices from every earlier slot"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (GOOD + 'atention = "sdpa"\n', ["presets", "mine.toml", "slots[0]", "'atention'", "attention"]),
        ('colour = 1\n' + GOOD, ["mine.toml", "'colour'", "reference"]),
        (GOOD.replace("[base]\n", '[base]\nfoo = 1\n'), ["mine.toml", "base", "'foo'", "quantization"]),
        (GOOD + 'attention = "fast"\n', ["slots[0].attention", "'fast'", "eager, sdpa"]),
        (GOOD + 'quantization = "int3"\n', ["slots[0].quantization", "bnb-nf4"]),
        (GOOD + 'cache = 5\n', ["slots[0].cache", "5"]),
        (GOOD.replace('model = "m"\n', ""), ["model", "missing"]),
        (GOOD.replace('id = "a"', 'name = "a"'), ["slots[0].id", "missing"]),
        (GOOD.replace('title = "T"\n', ""), ["title", "missing"]),
        ('title = "T"\n', ["slots", "missing"]),
        ('reference = "z"\n' + GOOD, ["reference", "'z'", "a"]),
        ('title = ', ["mine.toml", "TOML"]),
        (GOOD.replace("[base]", "[settings]\nnew_tokens = 0\n[base]"), ["new_tokens", "1 to 4096"]),
        (GOOD + 'drafter = { modle = "x" }\nspeculation = "draft-model"\n', ["drafter", "'modle'", "model"]),
    ],
)
def test_mistakes_name_file_key_and_what_is_allowed(tmp_path, text, parts):
    folder = tmp_path / "presets"
    folder.mkdir()
    with pytest.raises(ConfigError) as refused:
        load_preset(write(folder, text))
    for part in parts:
        assert part in str(refused.value), f"{part!r} is missing from: {refused.value}"


def test_a_drafter_follows_its_targets_dtype_and_device(tmp_path):
    text = GOOD.replace('model = "m"', 'model = "m"\ndtype = "float16"\ndevice = "cuda:1"')
    preset = load_preset(write(tmp_path, text + 'speculation = "draft-model"\ndrafter = "small"\n'))
    drafter = preset.slots[0].decode.drafter
    assert (drafter.model, drafter.dtype, drafter.device) == ("small", "float16", "cuda:1")


def test_unknown_presets_list_the_known_ones():
    with pytest.raises(ConfigError, match="five-ways"):
        find_preset(load_presets(), "nope")
    with pytest.raises(ConfigError, match="preset"):
        find_preset(load_presets(), None)


def test_an_empty_folder_is_an_error(tmp_path):
    with pytest.raises(ConfigError):
        load_presets(tmp_path)


def test_shipped_presets_are_files_named_by_their_id():
    assert {path.stem for path in PRESETS_FOLDER.glob("*.toml")} == set(load_presets())


def test_the_space_declares_the_pinned_gradio_and_every_dependency_is_pinned():
    lines = [line.split("#")[0].strip() for line in (ROOT / "requirements.txt").read_text().splitlines()]
    pins = dict(line.split("==") for line in lines if line)
    declared = re.search(r"^sdk_version: (\S+)$", (ROOT / "README.md").read_text(), re.M).group(1)
    assert declared == pins["gradio"]
    assert re.search(r"^app_file: app.py$", (ROOT / "README.md").read_text(), re.M)
