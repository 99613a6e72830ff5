"""python -m playground.distill --target builtin --out my-drafter: text, hidden states, training, figures, card.

What is done lies in a folder beside the result (`my-drafter.work`); the same command goes on from there.
"""

from __future__ import annotations

import argparse
import dataclasses
import logging
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

from ..checks import ConfigError
from ..config import ModelSpec
from ..engines.options import EngineOptions, default_cache_folder
from ..engines.progress import report_to_console
from ..engines.quiet import quieten
from ..engines.refusal import Refusal
from ..quantization import Dtype
from .recipe import Recipe

HELDOUT_EACH = 8  # answers a kind for acceptance
GAIN_TOKENS, GAIN_REPEATS, GAIN_DRAFT_LEN = 96, 3, 4

_GUIDE = """
When to bother: no small model shares the target's tokenizer, and you will run the target often. What it costs:
the target writes --text-tokens ids, is run over them once, and a small layer is trained on the result; for a
135M target on two CPU cores that is about two hours, on a GPU minutes. What to expect: text like the training
prompts is drafted well, other text less. More text and more passes raise acceptance, slowly; a wider or deeper
head costs draft time in every round. The card in --out has the figures of this run.
"""


def main() -> None:
    """Train a draft head and leave it in a folder. Stop it with Ctrl-C; the same command goes on."""
    quieten()
    logging.basicConfig(level=logging.WARNING)
    flags = _flags()
    if (flags.out / "config.json").exists():
        raise SystemExit(f"--out: {flags.out} holds a result already; name another folder, or remove it first.")
    try:
        _distill(flags, _recipe(flags))
    except (ConfigError, Refusal) as error:
        raise SystemExit(f"\n{error} {getattr(error, 'hint', '')}".strip()) from None
    except KeyboardInterrupt:
        raise SystemExit(f"\nStopped. What is done lies in {_work(flags)}; the same command goes on from there.") from None


def _flags() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m playground.distill", description="Train a draft head for a causal language model.", epilog=_GUIDE
    )
    own = {f.name: f.default for f in dataclasses.fields(Recipe)}
    parser.add_argument("--target", required=True, help='"builtin", a hub id or a folder')
    parser.add_argument("--out", type=Path, required=True, help="folder to make")
    parser.add_argument("--dtype", choices=get_args(Dtype), default=own["dtype"])
    parser.add_argument("--text-tokens", type=int, default=own["text_tokens"], help="ids that the target writes (%(default)s)")
    parser.add_argument("--answer-tokens", type=int, default=own["answer_tokens"], help="at most so many an answer (%(default)s)")
    parser.add_argument("--passes", type=float, default=own["passes"], help="how often the text is gone through (%(default)s)")
    parser.add_argument("--layers", type=int, default=own["layers"], help="decoder layers of the head (%(default)s)")
    parser.add_argument("--intermediate-size", type=int, default=0, help="width of its MLP (default: the target's)")
    parser.add_argument("--scored-ids", type=int, default=own["scored_ids"], help="ids it can draft (%(default)s)")
    parser.add_argument("--unroll", type=int, default=own["unroll"], help="fed-back steps the loss reaches (%(default)s)")
    parser.add_argument("--batch", type=int, default=own["batch"], help="answers a step (%(default)s)")
    parser.add_argument("--learning-rate", type=float, default=own["learning_rate"])
    parser.add_argument("--seed", type=int, default=own["seed"])
    parser.add_argument("--no-chat-template", action="store_true", help="for a target that has none")
    parser.add_argument("--licence", default="that of the target", help="what the card says (%(default)s)")
    parser.add_argument("--cache", default=default_cache_folder(), help="folder for converted models (%(default)s)")
    parser.add_argument("--offline", action="store_true", help="fetch nothing")
    return parser.parse_args()


def _recipe(flags: argparse.Namespace) -> Recipe:
    for name in ("text_tokens", "answer_tokens", "passes", "layers", "scored_ids", "unroll", "batch", "learning_rate"):
        if getattr(flags, name) <= 0:
            raise ConfigError(f"--{name.replace('_', '-')}", f"got {getattr(flags, name)}; give a number above 0.")
    given = {f.name: getattr(flags, f.name) for f in dataclasses.fields(Recipe) if hasattr(flags, f.name)}
    return Recipe(**given, chat_template=not flags.no_chat_template)


def _work(flags: argparse.Namespace) -> Path:
    return flags.out.with_name(flags.out.name + ".work")


def _distill(flags: argparse.Namespace, recipe: Recipe) -> None:
    from ..engines.local import LocalEngine
    from ..engines.weights import WeightStore
    from .card import Facts, write_card
    from .evaluation import acceptances
    from .hidden import lessons
    from .making import head_for, prepared
    from .prompts import read_prompts, spread
    from .speed import gains
    from .training import train
    from .writing import answers, write_training_text

    options = EngineOptions(flags.cache, offline=flags.offline)
    work = prepared(_work(flags), recipe)
    model = ModelSpec(recipe.target, dtype=recipe.dtype)
    heldout = read_prompts("heldout")
    store = WeightStore(options)
    with store.use(model, report_to_console) as weights:
        module, card = weights.module("distill", "sdpa"), weights.card
        texts = _counting("writing text", recipe.text_tokens, "ids")
        rows = write_training_text(
            module, card, read_prompts("train"), work / "text.jsonl", recipe.text_tokens, recipe.answer_tokens,
            recipe.seed, recipe.chat_template, texts,
        )
        head = head_for(weights.pristine, recipe, rows)
        heard = _counting("hidden states", len(rows), "answers")
        seen = lessons(module, head, rows, work / "train", recipe.teacher_top, heard)
        progress = train(head, seen, recipe, work / "checkpoint.pt", _training_line)
        report_to_console("measuring acceptance on held-out topics", None)
        held = answers(module, card, spread(heldout, HELDOUT_EACH), recipe.answer_tokens, 0.0, recipe.chat_template)
        head.to(card.dtype).save(work / "head")
        held_lessons = lessons(module, head, held, work / "heldout", recipe.teacher_top, lambda done: None)
        accepted = acceptances(head, held_lessons)
    store.unload(None)
    report_to_console("measuring speed", None)
    engine = LocalEngine(options)
    gained = gains(
        engine, model, str(work / "head"), spread(heldout, 1), GAIN_DRAFT_LEN,
        min(GAIN_TOKENS, recipe.answer_tokens), GAIN_REPEATS,
        recipe.chat_template,
    )
    counted = Counter(token for row in rows for token in row.new_ids)
    facts = Facts(
        rows=len(rows), text_tokens=counted.total(),
        scored_share=sum(counted[i] for i in head.ids.tolist()) / counted.total(),
        progress=progress, heldout_rows=len(held), acceptances=accepted, gains=gained, machine=engine.machine(),
        draft_len=GAIN_DRAFT_LEN, licence=flags.licence,
    )
    card_text = write_card(work / "head", head.config, recipe, facts)
    flags.out.parent.mkdir(parents=True, exist_ok=True)
    (work / "head").rename(flags.out)
    print(f"\r\033[K{card_text}\n\n{flags.out} is ready; {work} may be removed.", file=sys.stderr)


def _counting(stage: str, total: int, unit: str) -> Callable[[int], None]:
    return lambda done: report_to_console(f"{stage}: {done:,} of {total:,} {unit}", min(1.0, done / total))


def _training_line(progress: Any) -> None:
    left = progress.seconds / progress.step * (progress.steps - progress.step)
    report_to_console(
        f"training: step {progress.step:,} of {progress.steps:,}, loss {progress.loss:.2f}, "
        f"first id agrees {progress.agreement:.0%}, {left / 60:.0f} min left",
        progress.step / progress.steps,
    )


if __name__ == "__main__":
    main()
