"""Tiny random models, made on the spot and loaded like any other folder."""

from __future__ import annotations

import os
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from playground.config import ModelSpec, Prompt, Settings
from playground.distill.hidden import lessons
from playground.distill.making import head_for
from playground.distill.recipe import Recipe
from playground.distill.training import train
from playground.distill.writing import Row
from playground.engine import Stop
from playground.engines.local import LocalEngine
from playground.engines.options import EngineOptions
from playground.engines.quiet import quieten
from playground.metrics import measure, text_of

quieten()

CORPUS = ["the quick brown fox jumps over the lazy dog", "하늘은 왜 파란가요", "emoji 🎉 family 👩‍👩‍👧", "def f(x): return x"] * 4
TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}<{{ m['role'] }}>{{ m['content'] }}{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)


def make_tokenizer(vocab_size=400, template=TEMPLATE, corpus=CORPUS):
    """A byte-level BPE tokenizer: any text encodes, and one character may take several ids."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size, special_tokens=["<bos>", "<eos>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    tokenizer.train_from_iterator(corpus, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<bos>", eos_token="<eos>", chat_template=template
    )


def make_model(folder, seed=0, layers=2, width=64, tokenizer=None, dtype=torch.float32, **config):
    """Save a random Llama with its tokenizer and return the folder's name."""
    tokenizer = tokenizer or make_tokenizer()
    torch.manual_seed(seed)
    shape = {"num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 2 * width, "max_position_embeddings": 256}
    settings = LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=width, num_hidden_layers=layers, bos_token_id=0, eos_token_id=1,
        initializer_range=0.2, **(shape | config),
    )
    LlamaForCausalLM(settings).to(dtype).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def make_head(folder, model, rows=(), passes=0):
    """Save a draft head for a model: random, or trained on a few rows until it knows them. Returns the folder's name."""
    target = AutoModelForCausalLM.from_pretrained(model.model).eval()
    recipe = Recipe(model.model, scored_ids=300, unroll=3, passes=passes, batch=1, learning_rate=0.01)
    every_id = Row("k", "p", 0.0, (), tuple(range(target.config.vocab_size)))
    head = head_for(target, recipe, rows or [every_id])
    if passes:
        seen = lessons(target, head, rows, Path(f"{folder}-lessons"), 4, lambda n: None)
        train(head, seen, recipe, Path(f"{folder}-checkpoint"), lambda progress: None)
    head.save(Path(folder))
    return str(folder)


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    return ModelSpec(make_model(tmp_path_factory.mktemp("tiny")), dtype="float32")


@pytest.fixture(scope="session")
def other(tmp_path_factory):
    """Another random model with the same tokenizer: a drafter that is nearly always wrong."""
    return ModelSpec(make_model(tmp_path_factory.mktemp("other"), seed=1), dtype="float32")


@pytest.fixture
def engine(tmp_path):
    engine = LocalEngine(EngineOptions(str(tmp_path), offline=True))
    yield engine
    engine.close()


def ask(text="the quick brown fox", **settings):
    return Prompt(text, Settings(**({"new_tokens": 24, "ignore_eos": True} | settings)))


def run(engine, slot, prompt=None, stop=None):
    """All events of a run."""
    return list(engine.run(slot, prompt or ask(), stop or Stop()))


def ids_of(events):
    return [i for event in events for i in getattr(event, "ids", ())]


__all__ = ["ask", "ids_of", "make_head", "make_model", "make_tokenizer", "measure", "run", "text_of"]
