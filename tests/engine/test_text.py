"""Text comes out whole, in order, and equal to decoding everything at once."""

import random
from concurrent.futures import ThreadPoolExecutor

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from playground.config import Prompt, Settings
from playground.engines.refusal import Refusal
from playground.engines.text import Codec, TextStream

from .conftest import CORPUS, make_tokenizer

TEXTS = [
    "하늘은 왜 파란가요? 빛이 흩어지기 때문입니다.",
    "emoji 🎉🎉 and a family 👩‍👩‍👧 and a flag 🇰🇷",
    "  leading spaces,\n\nblank lines\tand tabs  ",
    "naïve café — “quotes” … $3 and $4 <b>",
    "\ufffd a replacement character of its own \ufffd",
]


def metaspace_tokenizer():
    """Word pieces carry their leading space and decoding strips the first: gluing pieces loses it."""
    tokenizer = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    special = ["<unk>", "<s>", "</s>", *(f"<0x{i:02X}>" for i in range(256))]
    tokenizer.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=700, special_tokens=special[:3]))
    tokenizer.add_tokens(special[3:])
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", unk_token="<unk>")


@pytest.fixture(scope="module", params=["byte-level", "metaspace"])
def codec(request):
    return Codec(make_tokenizer() if request.param == "byte-level" else metaspace_tokenizer())


def ids_for(codec, text):
    return codec._tokenizer(text, add_special_tokens=False)["input_ids"]


def stream(codec, ids, group):
    """The updates of a stream fed `group` ids at a time."""
    text = TextStream(codec)
    updates = [text.feed(ids[i : i + group]) for i in range(0, len(ids), group)]
    return [*updates, text.finish()]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("group", [1, 2, 3, 7])
def test_updates_join_to_the_full_decode(codec, text, group):
    ids = ids_for(codec, text)
    assert "".join(stream(codec, ids, group)) == codec.decode(ids)


@pytest.mark.parametrize("text", TEXTS[:4])
def test_no_update_shows_half_a_character(codec, text):
    ids = ids_for(codec, text)
    if "\ufffd" in codec.decode(ids):
        pytest.skip("this tokenizer cannot write the text at all")
    assert not any("\ufffd" in update for update in stream(codec, ids, 1))


def test_characters_really_are_split_here():
    codec = Codec(make_tokenizer())
    ids = ids_for(codec, "🚀")
    assert any("\ufffd" in codec.decode([i]) for i in ids), "else the tests above would prove nothing"


@pytest.mark.parametrize("seed", range(20))
def test_random_ids_join_too(codec, seed):
    """Random models emit invalid bytes and special tokens in any order."""
    dice = random.Random(seed)
    ids = [dice.randrange(len(codec.vocabulary())) for _ in range(120)]
    assert "".join(stream(codec, ids, 1)) == codec.decode(ids)
    assert "".join(stream(codec, ids, 5)) == codec.decode(ids)


def test_a_cut_inside_a_character_ends_as_the_full_decode_does():
    codec = Codec(make_tokenizer())
    ids = ids_for(codec, "ok 🚀")[:-1]
    *updates, rest = stream(codec, ids, 1)
    assert not any("\ufffd" in update for update in updates)
    assert "".join(updates) + rest == codec.decode(ids)


def test_special_tokens_never_appear_and_are_not_visible():
    codec = Codec(make_tokenizer())
    ids = [0, *ids_for(codec, "fox"), 1]
    assert "".join(stream(codec, ids, 1)) == "fox"
    assert codec.visible(ids) == len(ids) - 2


def test_the_template_is_tokenized_once():
    """Rendering to a string and tokenizing again would double the beginning-of-sequence id."""
    tokenizer = make_tokenizer()
    ids = Codec(tokenizer).encode(Prompt("hi", Settings(system_prompt="be brief")))
    turns = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hi"}]
    own = tokenizer.apply_chat_template(turns, add_generation_prompt=True, return_dict=True, return_tensors="pt")
    assert ids.tolist() == own["input_ids"].tolist()
    assert ids[0].tolist().count(tokenizer.bos_token_id) == 1
    assert ids.shape[0] == 1 and ids.shape[1] > 2, "prompt tokens are a dimension of the ids, not the size of a mapping"


def test_without_the_template_the_text_goes_in_as_it_is():
    codec = Codec(make_tokenizer())
    assert codec.decode(codec.encode(Prompt("plain", Settings(chat_template=False)))[0].tolist()) == "plain"


@pytest.mark.parametrize(
    ("template", "settings", "field"),
    [
        (None, Settings(), "chat_template"),
        ("{{ raise_exception('no system role') }}", Settings(), "chat_template"),
        (None, Settings(chat_template=False, system_prompt="be brief"), "system_prompt"),
    ],
)
def test_templates_that_cannot_be_used_are_refused_by_field(template, settings, field):
    with pytest.raises(Refusal, match=field):
        Codec(make_tokenizer(template=template)).encode(Prompt("hi", settings))


def test_a_thousand_parallel_calls():
    codec = Codec(make_tokenizer())

    def use(i):
        ids = codec.encode(Prompt(f"fox {i}", Settings(chat_template=False)))[0].tolist()
        return codec.decode(ids)

    with ThreadPoolExecutor(16) as pool:
        assert list(pool.map(use, range(1000))) == [f"fox {i}" for i in range(1000)]
