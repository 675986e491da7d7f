"""compressed-tensors: the weights of a model in each of its formats, and what it decompresses them to."""

import torch
from common import Case, main, tiny_model

SIZES = {"hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 1, "head_dim": 32, "num_attention_heads": 4, "num_key_value_heads": 4}
FORMATS = {  # preset of compressed_tensors, as case
    "w8a16": "W8A16", "w4a16": "W4A16", "fp8": "FP8_DYNAMIC", "fp8_block": "FP8_BLOCK", "nvfp4": "NVFP4A16", "mxfp4": "MXFP4A16", "mxfp6": "MXFP6A16", "mxfp8": "MXFP8A16", "w4a16_asym": "W4A16_ASYM",
    "int8": "W8A8",
}


def make(out, name, preset):
    from compressed_tensors.compressors import ModelCompressor
    from compressed_tensors.quantization import QuantizationConfig, apply_quantization_config, preset_name_to_scheme
    case = Case(out, name, src="src", form=preset)
    model = tiny_model(**SIZES)
    scheme = preset_name_to_scheme(preset, ["Linear"])
    config = QuantizationConfig(config_groups={"group_0": scheme}, ignore=["lm_head"], quantization_status="frozen")
    apply_quantization_config(model, config)
    from compressed_tensors.quantization.utils import calculate_qparams
    for module in model.modules():
        args = getattr(getattr(module, "quantization_scheme", None), "weights", None)
        if args is None:
            continue
        with torch.no_grad():
            set_scales(module, args, calculate_qparams)
    compressor = ModelCompressor.from_pretrained_model(model)
    compressor.compress_model(model)
    model.save_pretrained(case.at("src"))
    compressor.update_config(case.at("src"))
    compressor.decompress_model(model)
    plain = {key: tensor for key, tensor in model.state_dict().items() if "scale" not in key and "zero_point" not in key and "_shape" not in key}
    case.answer("expected_dequantized", {key: t.to(torch.bfloat16) for key, t in plain.items()})


def set_scales(module, args, calculate_qparams):
    """Scales of the smallest and the largest weight of each block, as observers find them."""
    w = module.weight.float()
    rows, columns = w.shape
    if args.strategy == "channel":
        parts = w.reshape(rows, 1, columns)
    elif args.strategy in ("group", "tensor_group"):
        parts = w.reshape(rows, columns // args.group_size, args.group_size)
    elif args.strategy == "block":
        high, wide = args.block_structure
        parts = w.reshape(rows // high, high, columns // wide, wide).transpose(1, 2).reshape(rows // high, columns // wide, -1)
    else:
        parts = w.reshape(1, 1, -1)
    low, high = parts.amin(-1), parts.amax(-1)
    more = {}
    if hasattr(module, "weight_global_scale"):
        from compressed_tensors.quantization.utils import generate_gparam
        more["global_scale"] = generate_gparam(w.amin(), w.amax())
        module.weight_global_scale.data.copy_(more["global_scale"])
    scale, zero_point = calculate_qparams(low, high, args, **more)
    module.weight_scale.data = scale.to(module.weight_scale.dtype).reshape(module.weight_scale.shape)
    if getattr(module, "weight_zero_point", None) is not None:
        module.weight_zero_point.data = zero_point.to(module.weight_zero_point.dtype).reshape(module.weight_zero_point.shape)


def maker(name, preset):
    def run(out):
        make(out, name, preset)
    run.__name__ = name
    return run


if __name__ == "__main__":
    from compressed_tensors.quantization import quant_scheme
    known = quant_scheme.PRESET_SCHEMES
    main(["compressed-tensors", "transformers"], *[maker(name, preset) for name, preset in FORMATS.items() if preset in known])
