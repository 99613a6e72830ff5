"""What a slot is refused for before anything is loaded for it."""

from __future__ import annotations

from ..config import Prompt, SlotSpec
from . import attention, caches, compiling, lean, speculate
from .refusal import Refusal
from .weights import Card


def admit(slot: SlotSpec, prompt: Prompt, prompt_tokens: int, card: Card, drafter: Card | None) -> None:
    """Raise Refusal for what this device, this model or this pair of models cannot do."""
    _check_length(prompt_tokens, prompt, card)
    _check_batch(slot, prompt)
    _check_speculation(slot, card, drafter, prompt)
    if reason := attention.unavailable(slot.decode.attention, card.device):
        raise reason
    caches.check(slot.decode, card.config, card.device)
    if slot.decode.compile != "none" and (reason := compiling.unavailable(card.device)):
        raise reason
    if slot.decode.lean:
        lean.check(card.dtype, card.device)
    if slot.decode.keep_prefix:
        caches.check_prefix(card.config)


def _check_length(prompt_tokens: int, prompt: Prompt, card: Card) -> None:
    wanted = prompt.settings.new_tokens
    if prompt_tokens == 0:
        raise Refusal("prompt: the tokenizer makes no token of it.", "Type some text.")
    if card.context and prompt_tokens + wanted > card.context:
        raise Refusal(
            f"new_tokens: {prompt_tokens:,} prompt tokens and {wanted:,} new tokens are "
            f"{prompt_tokens + wanted:,}; this model's context is {card.context:,}.",
            f"Ask for at most {max(0, card.context - prompt_tokens):,} new tokens, or shorten the prompt.",
        )


def _check_batch(slot: SlotSpec, prompt: Prompt) -> None:
    if prompt.settings.batch == 1:
        return
    for choice, on in (("speculation", slot.decode.speculation != "none"), ("keep_prefix", slot.decode.keep_prefix)):
        if on:
            raise Refusal(
                f"batch: {choice} answers one prompt at a time; {prompt.settings.batch} were asked for.",
                f"Set batch to 1, or leave {choice} out of this slot.",
            )


def _check_speculation(slot: SlotSpec, card: Card, drafter: Card | None, prompt: Prompt) -> None:
    """Raise Refusal for what this pair of models, or this model, cannot do."""
    if slot.decode.speculation == "early-exit":
        speculate.check_exit_layer(slot.decode.exit_layer, card.config.get_text_config().num_hidden_layers)
    if slot.decode.speculation == "draft-model":
        _check_drafter(card, drafter)
    if slot.decode.speculation == "universal" and prompt.settings.temperature > 0:
        # UniversalSpeculativeDecodingGenerator cuts the drafter's head in one order of ids and spreads its scores in
        # another; measured, the answer follows the drafter's distribution instead of the target's.
        raise Refusal(
            "temperature: with a drafter of another tokenizer, Transformers 5.24 does not sample from the target's distribution.",
            "Set the temperature to 0, or choose a drafter with the target's tokenizer.",
        )
    if slot.decode.speculation == "universal" and _vocabulary_size(card) == _vocabulary_size(drafter):
        raise Refusal(
            f"drafter: it scores {_vocabulary_size(drafter):,} ids like the target, and Transformers tells tokenizers apart by that.",
            'With the target\'s own tokenizer use speculation = "draft-model"; else choose a drafter of another size.',
        )


def _check_drafter(target: Card, drafter: Card) -> None:
    speculate.check_vocabularies(target.codec, drafter.codec)
    sizes = [_vocabulary_size(card) for card in (target, drafter)]
    if sizes[0] != sizes[1]:
        raise Refusal(
            f"drafter: it scores {sizes[1]:,} ids, the target {sizes[0]:,}.",
            "Choose a drafter whose embedding has the target's size.",
        )


def check_same_ids(card: Card, reference: Card) -> None:
    """Distributions over ids can be compared only where the ids mean the same."""
    sizes = [_vocabulary_size(c) for c in (card, reference)]
    if sizes[0] != sizes[1] or card.codec.vocabulary() != reference.codec.vocabulary():
        raise Refusal(
            "quality: this slot's vocabulary differs from the reference slot's, so their distributions cannot be compared.",
            "Choose a reference slot of the same model family.",
        )


def _vocabulary_size(card: Card) -> int:
    """How many ids a model scores."""
    return card.config.get_text_config().vocab_size
