"""Tokenizers of Hugging Face's package `tokenizers`, and what they make of hard texts.

    tokenizing.py make FOLDER [TEXT]      trains small tokenizers on a text (tinyshakespeare's input.txt,
                                          or .txt.xz) and writes them, and the cases of the unit test
    tokenizing.py compare LIBRARY FOLDER [COUNT]
                                          compares liblockstep.so with the package on the tokenizers
                                          in a folder: COUNT random strings for each, and on TEXT

A line of cases.txt is: tokenizer, whether special tokens are added (decoding: kept), the most tokens (0:
any number), the text and the second text (or -) in hexadecimal, the ids with their segments, and the text
that they are decoded to. Needs the package, version 0.23; nothing is downloaded.
SPDX-License-Identifier: BSD-2-Clause"""

import ctypes
import glob
import json
import lzma
import os
import random
import sys
import unicodedata

from tokenizers import AddedToken, Regex, Tokenizer
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
O200 = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)

EXTRA = ["Übergröße çà naïve façade", "日本語 漢字", "Привет мир", "😀👨\u200d👩\u200d👧", "x\u0301 123456"]

# What texts are made of: each by itself is a case of the unit test, too.
PARTS = [
    "", "\n", "\r\n", " ", "  ", "\t", "   \n \n", "'s", "'LL", "'ſ", "can't", "don't n't", "1234567",
    "<|end|>", "the<|end|>king", "[MASK]", "a[MASK] b", "[CLS]", " . ", "?!", "``", "King", "kingKing",
    "a King.", "LORDS", "LORD", " thee ", "é!", "e\u0301!", "<sp>", " <spl> x", "İstanbul ıI", "ß", "ﬁ",
    "ΑΣ", "\u200d", "👨\u200d👩\u200d👧\u200d👦", "日本", "漢字x漢", "\x00", "\x01a", "\ufffd", "\u00a0",
    "\u3000", "\u2028", "\u0085", "\u00ad", "x\u0301\u0327\u0300", "각", "\u1100\u1161\u11a8", "ǅ", "²",
    "½", "Ⅷ", "४५", "_", "a_b", "#", "##", "the", "and ", "the King", "To be, or not to be: that",
    "naïve façade", "x" * 120, "   lead and trail   ", "a\u0327\u0301b\u0301\u0327", "①②", "Hello, y'all!",
]

# Blocks of characters that all versions of Unicode in question know, with weights.
BLOCKS = (
    [(0, 0x7F)] * 8 + [(0x80, 0x17F)] * 4 + [(0x300, 0x36F)] * 2
    + [(0x370, 0x4FF), (0x590, 0x6FF), (0x900, 0x97F), (0xE00, 0xE7F), (0x1100, 0x11FF),
       (0x1E00, 0x1FFF), (0x2000, 0x218F), (0x2500, 0x27BF), (0x3000, 0x30FF), (0x4E00, 0x9FA5),
       (0xAC00, 0xD7A3), (0xF900, 0xFDFF), (0xFE20, 0xFFEF), (0x1D400, 0x1D7FF), (0x1F300, 0x1F64F),
       (0x20000, 0x20FFF), (0xE0100, 0xE01EF)]
)


def read_text(path):
    opened = lzma.open(path, "rb") if path.endswith(".xz") else open(path, "rb")
    with opened as file:
        return file.read().decode()


def bpe(lines, size, special=(), bytes_=True, post=None, decoder=None, normal=None, cut=None, **model):
    made = Tokenizer(models.BPE(**model))
    if normal is not None:
        made.normalizer = normal
    if cut is not None:
        made.pre_tokenizer = cut
    made.decoder = decoder or (decoders.ByteLevel() if bytes_ else None)
    parts = {k: model[k] for k in ("continuing_subword_prefix", "end_of_word_suffix") if k in model}
    alphabet = pre_tokenizers.ByteLevel.alphabet() if bytes_ else []
    limit = {} if bytes_ else {"limit_alphabet": 60}
    made.train_from_iterator(lines, trainers.BpeTrainer(
        vocab_size=size, special_tokens=list(special), initial_alphabet=alphabet,
        show_progress=False, **limit, **parts))
    if post is not None:
        made.post_processor = post(made)
    return made


def wordpiece(lines, size, **normal):
    made = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=30))
    made.normalizer = normalizers.BertNormalizer(**normal)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.decoder = decoders.WordPiece()
    made.train_from_iterator(lines, trainers.WordPieceTrainer(
        vocab_size=size, limit_alphabet=60, show_progress=False,
        special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]))
    return made


def make_tokenizers(lines):
    split, sequence = pre_tokenizers.Split, pre_tokenizers.Sequence
    byte_level = pre_tokenizers.ByteLevel
    made = {}
    made["gpt2"] = bpe(lines, 330, ["<|end|>"], cut=byte_level(add_prefix_space=False),
                       post=lambda t: processors.ByteLevel())
    made["roberta"] = bpe(
        lines, 320, ["<s>", "<pad>", "</s>", AddedToken("[MASK]", lstrip=True, special=True)],
        cut=byte_level(add_prefix_space=True),
        post=lambda t: processors.RobertaProcessing(("</s>", 2), ("<s>", 0)))
    made["llama3"] = bpe(
        lines, 340, ["<|end|>", "<sp>"], ignore_merges=True,
        cut=sequence([split(Regex(LLAMA3), "isolated"), byte_level(False, use_regex=False)]),
        post=lambda t: processors.Sequence([processors.ByteLevel(), processors.TemplateProcessing(
            single="<sp> $A", pair="<sp> $A <sp>:1 $B:1", special_tokens=[("<sp>", 1)])]))
    made["o200"] = bpe(
        lines, 320, normal=normalizers.NFC(),
        cut=sequence([split(Regex(O200), "removed", invert=True), byte_level(False, use_regex=False)]))
    made["splits"] = bpe(
        lines, 300, cut=sequence([
            split(Regex(r"\s+|\b\p{Han}"), "contiguous", invert=True),
            split(Regex(r"[\p{P}]?"), "merged_with_next", invert=True),
            split(" ", "merged_with_previous"), byte_level(False, use_regex=False)]))
    made["characters"] = bpe(
        lines, 120, ["[UNK]"], bytes_=False, unk_token="[UNK]", fuse_unk=True,
        normal=normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase(), normalizers.Strip()]),
        cut=sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation(),
                      pre_tokenizers.Digits(True)]))
    made["affixes"] = bpe(
        lines, 160, ["[UNK]"], bytes_=False, unk_token="[UNK]",
        normal=normalizers.Sequence([
            normalizers.NFD(), normalizers.StripAccents(), normalizers.Replace(Regex("[0-9]+"), "#"),
            normalizers.Replace("``", '"'), normalizers.Prepend("_")]),
        cut=sequence([pre_tokenizers.Whitespace(), pre_tokenizers.Digits(False),
                      pre_tokenizers.Punctuation("contiguous"), pre_tokenizers.CharDelimiterSplit("q")]),
        continuing_subword_prefix="@", end_of_word_suffix="</w>")
    made["bert"] = wordpiece(lines, 260, lowercase=True)
    made["bert"].post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    made["cased"] = wordpiece(lines, 260, lowercase=False)
    made["cased"].post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    made["added"] = wordpiece(lines, 260, lowercase=True)
    made["added"].add_tokens([
        AddedToken("King", single_word=True), AddedToken("thee", lstrip=True, rstrip=True),
        AddedToken("é", normalized=True), AddedToken("é!", normalized=False), "LORD",
        AddedToken("LORDS", normalized=False)])
    made["added"].add_special_tokens(["<sp>", AddedToken("<spl>", lstrip=True, rstrip=True)])
    words = ["[UNK]", "the", "king", "a", "1", "!", "."]
    made["words"] = Tokenizer(models.WordLevel({w: i for i, w in enumerate(words)}, unk_token="[UNK]"))
    made["words"].pre_tokenizer = pre_tokenizers.Whitespace()
    return made


def expected(tokenizer, first, second, special, most):
    if most > 0:
        tokenizer.enable_truncation(most, strategy="longest_first")
    else:
        tokenizer.no_truncation()
    made = tokenizer.encode(first, second, add_special_tokens=special)
    return made.ids, made.type_ids, tokenizer.decode(made.ids, skip_special_tokens=not special)


def make(folder, path):
    text = read_text(path)
    lines = text[:200000].split("\n") + EXTRA * 20
    cases = []
    for name, tokenizer in make_tokenizers(lines).items():
        with open(os.path.join(folder, name + ".json"), "w", encoding="utf-8") as file:
            json.dump(json.loads(tokenizer.to_str()), file, ensure_ascii=False, separators=(",", ":"))
            file.write("\n")
        wanted = [(part, None, i % 2, 0) for i, part in enumerate(PARTS)]
        wanted += [(PARTS[i], PARTS[-i - 1], 1, 0) for i in range(0, len(PARTS) // 2, 5)]
        wanted += [("To be, or not to be", "that is the question", 1, most) for most in (5, 8, 11)]
        wanted += [("the King", "that is the question: whether", special, 9) for special in (0, 1)]
        wanted += [("".join(PARTS), None, 0, 0)]
        for first, second, special, most in wanted:
            ids, segments, decoded = expected(tokenizer, first, second, bool(special), most)
            cases.append(" ".join(
                [name, str(special), str(most), first.encode().hex() or ".",
                 "-" if second is None else second.encode().hex() or "."]
                + ["%d/%d" % pair for pair in zip(ids, segments)] + [decoded.encode().hex() or "."]))
    with open(os.path.join(folder, "cases.txt"), "w", encoding="ascii") as file:
        file.write("\n".join(cases) + "\n")
    print(len(cases), "cases")


class Lockstep:
    """A tokenizer of liblockstep.so, by its public functions."""

    def __init__(self, library, path):
        self.library = library
        self.handle = ctypes.c_void_p()
        assert library.lockstep_tokenizer_load(path.encode(), ctypes.byref(self.handle), None) == 0, path

    def encode(self, text, special):
        ids, count = ctypes.POINTER(ctypes.c_uint32)(), ctypes.c_size_t()
        data = text.encode()
        assert self.library.lockstep_tokenizer_encode(
            self.handle, data, ctypes.c_size_t(len(data)), int(special), ctypes.byref(ids),
            ctypes.byref(count), None) == 0
        return ids[: count.value]

    def decode(self, ids, special):
        text, length = ctypes.c_void_p(), ctypes.c_size_t()
        array = (ctypes.c_uint32 * len(ids))(*ids)
        assert self.library.lockstep_tokenizer_decode(
            self.handle, array, ctypes.c_size_t(len(ids)), int(special), ctypes.byref(text),
            ctypes.byref(length), None) == 0
        return ctypes.string_at(text, length.value).decode()


def random_text(source, text):
    out = []
    for _ in range(source.choice([0, 1, 2, 3, 5, 8, 13, 30, 60])):
        kind = source.random()
        if kind < 0.35:
            out.append(source.choice(PARTS))
        elif kind < 0.55 and text:
            begin = source.randrange(len(text))
            out.append(text[begin : begin + source.randrange(1, 20)])
        else:
            c = chr(source.randint(*source.choice(BLOCKS)))
            if unicodedata.ucd_3_2_0.category(c) != "Cn" or ord(c) > 0x1F000:
                out.append(c)
    return "".join(out)


def compare(library_path, folder, count, text):
    library = ctypes.CDLL(library_path)
    total = wrong = 0
    for path in sorted(glob.glob(os.path.join(folder, "*.json"))):
        tokenizer, mine, source = Tokenizer.from_file(path), Lockstep(library, path), random.Random(7)
        for i in range(count + 1):
            given = text if i == count else random_text(source, text)
            special = source.random() < 0.5
            ids, _, decoded = expected(tokenizer, given, None, special, 0)
            got = mine.encode(given, special)
            total += 1
            if got != ids or mine.decode(ids, special) != decoded:
                wrong += 1
                if wrong <= 10:
                    print("%s: %r: %s, not %s" % (path, given[:200], got[:50], ids[:50]))
    print("%d texts, %d of them encoded or decoded otherwise" % (total, wrong))
    return wrong == 0 and total > 0


def main(arguments):
    data = os.environ.get("LOCKSTEP_DATA", "../shared/data")
    text = os.path.join(data, "tinyshakespeare", "input.txt.xz")
    if arguments[0] == "make":
        make(arguments[1], arguments[2] if len(arguments) > 2 else text)
        return 0
    known = read_text(text) if os.path.exists(text) else "To be, or not to be"
    count = int(arguments[3]) if len(arguments) > 3 else 500
    return 0 if compare(arguments[1], arguments[2], count, known) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
