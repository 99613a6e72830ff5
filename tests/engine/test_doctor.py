"""What the doctor finds is what is there."""

import json
from pathlib import Path

import pytest
import torch
from transformers import MistralConfig, MistralForCausalLM

from playground.config import ModelSpec, SlotSpec

from .conftest import make_model, make_tokenizer, run


def found(engine, folder, dtype="float32"):
    checkup = engine.examine(ModelSpec(str(folder), dtype=dtype))
    return checkup, {finding.name: finding for finding in checkup.findings}


def edit(folder, name, **changes):
    path = Path(folder) / name
    values = json.loads(path.read_text()) if path.is_file() else {}
    path.write_text(json.dumps(values | changes))


def test_a_healthy_model_has_nothing_to_mend(engine, tiny):
    checkup, findings = found(engine, tiny.model)
    assert all(finding.ok for finding in findings.values()), findings
    assert findings["kernel"].facts[0] == "flash" and checkup.context == 256
    assert checkup.shape.bytes(10) == 2 * 2 * 32 * 10 * 4 and engine.resident() == (), "nothing is loaded for it"


@pytest.mark.parametrize(("file", "changes", "name", "word"), [
    ("config.json", {"use_cache": False}, "use_cache", "config.json"),
    ("generation_config.json", {"use_cache": False}, "use_cache", "generation_config.json"),
    ("generation_config.json", {"cache_implementation": "static"}, "implementation", "static"),
])  # fmt: skip
def test_what_disables_or_changes_the_cache_is_found(engine, tmp_path, file, changes, name, word):
    folder = make_model(tmp_path / "m")
    edit(folder, file, **changes)
    finding = found(engine, folder)[1][name]
    assert not finding.ok and word in finding.facts[0]


def test_a_loaded_model_in_training_mode_is_found(engine, tiny):
    run(engine, SlotSpec("s", "s", tiny))
    (weights,) = engine._store._weights.values()
    assert found(engine, tiny.model)[1]["training"].ok
    weights.pristine.train()
    weights.pristine.gradient_checkpointing_enable()
    finding = found(engine, tiny.model)[1]["training"]
    assert not finding.ok and finding.facts == ("training", "on")


def test_windows_are_told_and_limit_the_cache(engine, tmp_path):
    tokenizer = make_tokenizer()
    config = MistralConfig(
        vocab_size=len(tokenizer), hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, sliding_window=16, max_position_embeddings=256,
    )
    MistralForCausalLM(config).to(torch.float32).save_pretrained(tmp_path / "m")
    tokenizer.save_pretrained(tmp_path / "m")
    checkup, findings = found(engine, tmp_path / "m")
    assert findings["windows"].facts == ("2 of 2", "16") and checkup.shape.bytes(200) == checkup.shape.bytes(16)


def test_a_context_that_memory_cannot_hold_is_found(engine, tmp_path):
    folder = make_model(tmp_path / "m", max_position_embeddings=2**40)
    assert not found(engine, folder)[1]["context"].ok


def test_a_model_that_is_not_here_is_not_fetched(engine):
    assert engine.examine(ModelSpec("nobody/nothing")) is None
