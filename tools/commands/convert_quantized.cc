// convert dequantize and quantize: a quantised model into one of plain numbers, and back.
//
//   $ mckpt convert dequantize DeepSeek-V3 DeepSeek-V3-bf16
//   $ mckpt convert quantize trained_hf out_hf --like DeepSeek-V3
#include "convert/keys/value_options.h"
#include "convert/plan/conversion.h"
#include "convert/plan/dequantize.h"
#include "convert/plan/quantize.h"
#include "core/base/error.h"
#include "tools/commands/convert_modes.h"
#include "tools/options/checkpoint_flags.h"
#include "tools/options/command_line.h"
#include "tools/options/convert_options.h"
#include "tools/options/run_flags.h"
#include "tools/run/conversion.h"

namespace mckpt::impl {

Exit convert_dequantize(CommandLine& line) {
  ConvertOptions options;
  std::string dtype = "bf16";
  i64 max_shard_bytes = DequantizeOptions{}.max_shard_bytes;
  options.declare(line, "a Hugging Face folder of quantised weights, or one safetensors file",
                  "the folder, or the file, to make");
  options.declare_resume(line);
  options.declare_casts(line);
  AcceptFlag accept;
  accept.declare(line);
  line.option("--dtype TYPE", dtype,
              "data type of the weights that are quantised: bf16, fp16 or fp32; other tensors keep theirs")
      .words({"bf16", "fp16", "fp32"})
      .common();
  line.bytes("--max-shard-size", max_shard_bytes,
             "most bytes of tensors in one file of a folder; by default 5GB")
      .common();
  line.description(
      "Writes the values of quantised weights: FP8 with scales of blocks, rows or tensors, MXFP8, MXFP6, "
      "MXFP4, NVFP4, and "
      "INT4 and INT8 of compressed-tensors. Values are those of the reference implementations, bit for bit. "
      "Scales "
      "are left out, and so is quantization_config in config.json; everything else is copied.");
  line.description("Under mpirun the ranks share the work.");
  line.example("mckpt convert dequantize DeepSeek-V3 DeepSeek-V3-bf16");
  line.example("mckpt convert dequantize gpt-oss-20b gpt-oss-20b-bf16 --dry-run");
  line.example("mckpt convert dequantize model-00001-of-00163.safetensors part.safetensors --dtype fp32");
  line.parse();
  options.check();
  auto plan = [&] {
    return plan_dequantize({.source = options.source,
                            .target = options.target,
                            .dtype = parameter_type(dtype, "--dtype"),
                            .max_shard_bytes = max_shard_bytes,
                            .accept = accept.codes(),
                            .files = line.opening(),
                            .threads = options.threads});
  };
  return run_conversion(plan, "convert", options, line.flags());
}

Exit convert_quantize(CommandLine& line) {
  ConvertOptions options;
  std::string to;
  std::optional<std::string> like;
  QuantizeOptions how;
  options.declare(line, "a Hugging Face folder of plain numbers", "the folder to make");
  options.declare_resume(line);
  line.option(
          "--scheme|--to|--quantize SCHEME", to,
          "fp8-block (128 x 128 codes a scale, as DeepSeek-V3), mxfp4 (experts, as gpt-oss), or like-source")
      .words({"like-source", "fp8-block", "mxfp4"})
      .common();
  line.option("--like|--assets HF_DIR", like, "the quantised model that SRC was made of: --scheme like-source")
      .common();
  line.bytes("--max-shard-size", how.max_shard_bytes,
             "most bytes of tensors in one file; by default 5GB, or the files of --like")
      .common();
  line.description(
      "Writes codes and scales for the weights that published models of a scheme have quantised, and the "
      "entry "
      "quantization_config of config.json.");
  line.description(
      "like-source makes the tensors, files and config of --like. A block whose values are those that --like "
      "has "
      "keeps its scale, and so has the bytes that it had; a block that was trained gets a new scale.");
  line.example("mckpt convert quantize Qwen3-8B Qwen3-8B-FP8 --scheme fp8-block");
  line.example("mckpt convert quantize gpt-oss-20b-bf16 out_hf --scheme mxfp4 --dry-run");
  line.example("mckpt convert quantize trained_hf out_hf --like DeepSeek-V3");
  line.parse();
  options.check();
  how.to = quantize_scheme(to, "--scheme", like.has_value());
  how.source = options.source, how.target = options.target;
  how.like = like.value_or("");
  how.original_files = !line.given("--max-shard-size");
  how.files = line.opening();
  return run_conversion([&] { return plan_quantize(how); }, "convert", options, line.flags());
}

}  // namespace mckpt::impl
