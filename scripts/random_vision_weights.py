"""Writes a multimodal model of random weights for llama.cpp: a llama of two layers and an idefics3
projector, a few MB together.

    random_vision_weights.py FOLDER

Needs `gguf` and numpy. FOLDER/model.gguf and FOLDER/mmproj.gguf are what `llama-server -m … --mmproj …`
takes. It reads nothing: its replies are noise. It serves to test everything around that: the protocol with
real pictures, real token counts, a real window, a real grammar, and loops that a model made by itself.
"""

import pathlib
import sys

import gguf
import numpy

LAYERS, WIDTH, HEADS, INNER, WINDOW = 2, 64, 4, 128, 16384
TILE, PATCH, EYES, SEEN, MERGED = 336, 14, 1, 32, 4
MAX_SIDE_PIXELS = 1344
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<fake_token_around_image>", "<global-img>", "<image>"]
# A picture is cut into rows and columns of tiles, each announced by a word of its own.
TILES = [f"<row_{row}_col_{column}>" for row in range(1, 7) for column in range(1, 7)]
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{% if message['content'] is string %}{{ message['content'] }}"
    "{% else %}{% for part in message['content'] %}{% if part['type'] == 'text' %}{{ part['text'] }}"
    "{% else %}<image>{% endif %}{% endfor %}{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def byte_letters():
    """GPT-2's letter for every byte, in the order of bytes."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    spare = iter(range(256, 512))
    return [chr(byte if byte in plain else next(spare)) for byte in range(256)]


def noise(lot, *shape, scale=0.05):
    return (lot.standard_normal(shape) * scale).astype(numpy.float32)


def write_model(path, lot):
    letters = byte_letters()
    line = letters[ord("\n")]
    tokens = [*letters, line + line, *SPECIAL, *TILES]
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_context_length(WINDOW)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    normal, control = gguf.TokenType.NORMAL, gguf.TokenType.CONTROL
    writer.add_token_types([normal] * 257 + [control] * (len(SPECIAL) + len(TILES)))
    writer.add_token_merges([f"{line} {line}"])
    first = 257
    writer.add_bos_token_id(first)
    writer.add_eos_token_id(first + SPECIAL.index("<|im_end|>"))
    writer.add_add_bos_token(False)
    writer.add_chat_template(TEMPLATE)
    # Large enough that one letter follows from the last ones: small ones would be a fair die.
    writer.add_tensor("token_embd.weight", noise(lot, len(tokens), WIDTH, scale=1.0))
    writer.add_tensor("output.weight", noise(lot, len(tokens), WIDTH, scale=0.4))
    writer.add_tensor("output_norm.weight", numpy.ones(WIDTH, numpy.float32))
    for layer in range(LAYERS):
        at = f"blk.{layer}"
        writer.add_tensor(f"{at}.attn_norm.weight", numpy.ones(WIDTH, numpy.float32))
        writer.add_tensor(f"{at}.ffn_norm.weight", numpy.ones(WIDTH, numpy.float32))
        # Early tokens weigh little beside the last one, so a greedy model goes in circles.
        for name, scale in {"attn_q": 0.2, "attn_k": 0.2, "attn_v": 0.2, "attn_output": 0.0001}.items():
            writer.add_tensor(f"{at}.{name}.weight", noise(lot, WIDTH, WIDTH, scale=scale))
        writer.add_tensor(f"{at}.ffn_gate.weight", noise(lot, INNER, WIDTH, scale=0.2))
        writer.add_tensor(f"{at}.ffn_up.weight", noise(lot, INNER, WIDTH, scale=0.2))
        writer.add_tensor(f"{at}.ffn_down.weight", noise(lot, WIDTH, INNER, scale=0.2))
    finish(writer)


def write_projector(path, lot):
    writer = gguf.GGUFWriter(str(path), "clip")
    writer.add_string("general.type", "mmproj")
    writer.add_bool("clip.has_vision_encoder", True)
    writer.add_bool("clip.use_gelu", True)
    writer.add_string("clip.projector_type", "idefics3")
    for name, value in {
        "image_size": TILE, "patch_size": PATCH, "embedding_length": SEEN, "feed_forward_length": 2 * SEEN,
        "block_count": EYES, "attention.head_count": 2, "projection_dim": WIDTH,
        "projector.scale_factor": MERGED, "preproc_image_size": MAX_SIDE_PIXELS,
    }.items():
        writer.add_uint32(f"clip.vision.{name}", value)
    writer.add_float32("clip.vision.attention.layer_norm_epsilon", 1e-6)
    writer.add_array("clip.vision.image_mean", [0.5, 0.5, 0.5])
    writer.add_array("clip.vision.image_std", [0.5, 0.5, 0.5])
    ones, zeros = numpy.ones(SEEN, numpy.float32), numpy.zeros(SEEN, numpy.float32)
    writer.add_tensor("v.patch_embd.weight", noise(lot, SEEN, 3, PATCH, PATCH))
    writer.add_tensor("v.patch_embd.bias", zeros)
    writer.add_tensor("v.position_embd.weight", noise(lot, (TILE // PATCH) ** 2, SEEN))
    for layer in range(EYES):
        at = f"v.blk.{layer}"
        for name in ("ln1", "ln2"):
            writer.add_tensor(f"{at}.{name}.weight", ones)
            writer.add_tensor(f"{at}.{name}.bias", zeros)
        for name in ("attn_q", "attn_k", "attn_v", "attn_out"):
            writer.add_tensor(f"{at}.{name}.weight", noise(lot, SEEN, SEEN, scale=0.2))
            writer.add_tensor(f"{at}.{name}.bias", zeros)
        writer.add_tensor(f"{at}.ffn_up.weight", noise(lot, 2 * SEEN, SEEN, scale=0.2))
        writer.add_tensor(f"{at}.ffn_up.bias", numpy.zeros(2 * SEEN, numpy.float32))
        writer.add_tensor(f"{at}.ffn_down.weight", noise(lot, SEEN, 2 * SEEN, scale=0.2))
        writer.add_tensor(f"{at}.ffn_down.bias", zeros)
    writer.add_tensor("v.post_ln.weight", ones)
    writer.add_tensor("v.post_ln.bias", zeros)
    writer.add_tensor("mm.model.fc.weight", noise(lot, WIDTH, SEEN * MERGED * MERGED, scale=0.2))
    finish(writer)


def finish(writer):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    lot = numpy.random.default_rng(19)
    write_model(folder / "model.gguf", lot)
    write_projector(folder / "mmproj.gguf", lot)


if __name__ == "__main__":
    main()
