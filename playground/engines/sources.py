"""A model's name -> a folder on this machine, and a word on where it came from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..config import BUILTIN
from . import embedded
from .options import EngineOptions
from .progress import Report, reporting_bar
from .refusal import Refusal

_NEEDED_FILES = ("*.json", "*.safetensors", "*.jinja", "*.model", "*.txt")


@dataclass(frozen=True)
class Source:
    """A folder that from_pretrained can load, and its origin for people."""

    folder: Path
    origin: str

    @property
    def stored_bytes(self) -> int:
        """Bytes of the checkpoint's weight files."""
        return sum(path.stat().st_size for path in self.folder.glob("*.safetensors"))


def locate(model: str, revision: str | None, options: EngineOptions, report: Report) -> Source:
    """Find a model: the built-in one, a local folder, or a hub repository (fetched if need be).

    Raises Refusal when it cannot be had; `report` hears about stages and progress.
    """
    if model == BUILTIN:
        return Source(*embedded.locate_builtin(options, report))
    folder = Path(model).expanduser()
    if folder.is_dir():
        if not (folder / "config.json").is_file():
            raise Refusal(f"model: the folder {model} has no config.json.", "Give a folder saved by save_pretrained.")
        return Source(folder, f"folder {model}")
    if model.startswith((".", "/", "~")) or model.count("/") > 1:
        raise Refusal(f"model: there is no folder {model}.", "Check the path, or give a hub id such as org/name.")
    return Source(_fetch(model, revision, options, report), f"hub {model}" + (f"@{revision}" if revision else ""))


def _fetch(model: str, revision: str | None, options: EngineOptions, report: Report) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import GatedRepoError, LocalEntryNotFoundError, RepositoryNotFoundError

    report(f"fetching {model}", None)
    try:
        folder = snapshot_download(
            model,
            revision=revision,
            allow_patterns=list(_NEEDED_FILES),
            local_files_only=options.offline,
            tqdm_class=reporting_bar(f"fetching {model}", report, only_unit="B"),
        )
    except GatedRepoError as error:
        raise Refusal(
            f"model: {model} is gated and this machine has no access to it.",
            "Accept its licence on the hub and set HF_TOKEN (on a Space: a secret of that name).",
        ) from error
    except RepositoryNotFoundError as error:
        raise Refusal(
            f"model: the hub has no public model {model}.", "Check the name; for a private one set HF_TOKEN."
        ) from error
    except LocalEntryNotFoundError as error:
        raise Refusal(
            f"model: {model} is not on this machine and the hub cannot be reached.",
            "Connect to the network once to fetch it, or give a local folder.",
        ) from error
    except (OSError, ValueError) as error:
        raise Refusal(f"model: {model} could not be fetched: {error}", "Check the name and the network.") from error
    return Path(folder)
