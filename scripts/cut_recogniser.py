#!/usr/bin/env python3
"""Cuts a PP-OCR recogniser down to the characters of Latin script. Run by models.sh.

  cut_recogniser.py MODEL.onnx CHARACTERS.txt CUT.onnx CUT.txt

The last layer of the recogniser has a column of weights and a bias for each of 18,710 characters, most
of them Chinese: three quarters of the file, and a fifth of the time of a line. Kept columns are
computed as before, so a character that is kept is read with the same weights; a character that is
cut can no longer be read at all.

Needs nothing but Python: of ONNX only its framing (protocol buffers) and three messages are known
here: ModelProto.graph (7), GraphProto.initializer (5), TensorProto.dims (1) and raw_data (9).
Everything but the two tensors is copied byte by byte.
"""

import sys

# Beyond the letters with their accents: what stands on printed pages between Latin letters.
SIGNS = "–—‘’‚“”„†‡•…‰‹›€™→←↑↓−≤≥≈×÷½¼¾⅓⅔№℮°√∞■□●○☐☑✓✔★☆▪"
FLOAT_BYTES = 4


def is_kept(character):
    if len(character) != 1:
        return False
    code = ord(character)
    letters = 0x21 <= code <= 0x17F or code == 0x18F or 0x1A0 <= code <= 0x21B or 0x1E00 <= code <= 0x1EFF
    return letters or character in SIGNS


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def encode_varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def fields(data):
    """Each field of a message: its number, its value, and all of its bytes."""
    at = 0
    while at < len(data):
        start = at
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 2:
            length, at = varint(data, at)
            value, at = data[at : at + length], at + length
        elif kind in (1, 5):
            length = 8 if kind == 1 else 4
            value, at = data[at : at + length], at + length
        else:
            sys.exit(f"no ONNX model: a field of kind {kind}")
        yield key >> 3, value, data[start:at]


def block(number, payload):
    return encode_varint(number << 3 | 2) + encode_varint(len(payload)) + payload


def cut_tensor(tensor, classes, kept):
    """The tensor with only the kept classes, or None if it has none of them."""
    dims = [value for number, value, _ in fields(tensor) if number == 1]
    if classes not in dims:
        return None
    if dims[-1] != classes or len(dims) > 2:
        sys.exit(f"a tensor of shape {dims}: another model than this script is for")
    rows = dims[0] if len(dims) == 2 else 1
    out, sizes = b"", dims[:-1] + [len(kept)]
    for number, value, whole in fields(tensor):
        if number == 1:
            out += encode_varint(1 << 3) + encode_varint(sizes.pop(0))
        elif number == 9:
            if len(value) != rows * classes * FLOAT_BYTES:
                sys.exit("weights that are not 32 bits wide")
            wide = classes * FLOAT_BYTES
            row = [bytes(value[n * wide : (n + 1) * wide]) for n in range(rows)]
            cut = [b"".join(r[n * FLOAT_BYTES : (n + 1) * FLOAT_BYTES] for n in kept) for r in row]
            out += block(9, b"".join(cut))
        else:
            out += bytes(whole)
    return out


def cut_message(message, number, change):
    """The message with each field of that number changed."""
    return b"".join(
        block(number, change(value)) if found == number else bytes(whole)
        for found, value, whole in fields(message)
    )


def main():
    model, names, out_model, out_names = sys.argv[1:]
    characters = open(names, encoding="utf-8").read().rstrip("\n").split("\n")
    # Class 0 is the blank between characters, the last one the space.
    classes = ["blank", *characters, " "]
    kept = [n for n, name in enumerate(classes) if n in (0, len(classes) - 1) or is_kept(name)]
    done = []

    def change(tensor):
        cut = cut_tensor(tensor, len(classes), kept)
        done.extend([cut] if cut else [])
        return cut or bytes(tensor)

    with open(model, "rb") as file:
        data = memoryview(file.read())
    cut = cut_message(data, 7, lambda graph: cut_message(graph, 5, change))
    if len(done) != 2:
        sys.exit(f"{len(done)} tensors have {len(classes)} classes, not 2: another model")
    with open(out_model, "wb") as file:
        file.write(cut)
    with open(out_names, "w", encoding="utf-8") as file:
        file.write("".join(classes[n] + "\n" for n in kept[1:-1]))


if __name__ == "__main__":
    main()
