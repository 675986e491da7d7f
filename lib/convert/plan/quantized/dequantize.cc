// A folder becomes the result of an export of a checkpoint with the model's own names, and a file the result
// of `to-safetensors`; here only the view is put in front.
#include "convert/plan/quantized/dequantize.h"

#include <algorithm>

#include "convert/plan/conversion.h"
#include "convert/plan/targets/hf.h"
#include "convert/plan/targets/own.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "hf/quantized/dequantized_store.h"
#include "io/file/folder.h"
#include "io/store/soundness.h"

namespace mckpt::impl {
namespace {

// The view, and the words for what it decodes.
std::unique_ptr<Store> open_view(const DequantizeOptions& options, std::string& text) {
  std::unique_ptr<Store> store = open_store(options.source, options.files);
  if (format_family(store->format()) != FormatFamily::kSafetensors)
    throw Error(Code::kUnknownFormat, "only safetensors have quantised weights that are decoded")
        .file(options.source)
        .found(format_text(store->format()));
  QuantDeclaration declared = quant_declaration_of(*store);
  bool accepted = std::ranges::find(options.accept, Code::kBadScale) != options.accept.end();
  store = dequantized(std::move(store), declared, options.dtype,
                      accepted ? BadNumbers::kReport : BadNumbers::kRefuse);
  require_sound(store->findings(), store->root());
  const DequantizedStore* view = dequantized_view(*store);
  if (std::optional<Error> codes = undecoded_codes(*store)) throw codes->file(options.source);
  if (!view)
    throw Error(Code::kUnknownFormat, "no tensor is quantised: there is nothing to decode")
        .file(options.source)
        .expected("codes with scales, such as w.weight of FP8 and w.weight_scale_inv")
        .found("plain numbers")
        .help("use the source as it is: its tensors are the values");
  text = quantized_text(*view);
  return store;
}

// One file has no shards. `folder`: the source is one, so that the result may be one, too.
void refuse_shards_of_a_file(const DequantizeOptions& options, bool folder) {
  if (!options.max_shard_bytes) return;
  throw Error(Code::kUsage, "`max_shard_size` is for the files of a folder, and the result is one file")
      .file(options.target)
      .found(*options.max_shard_bytes)
      .help(cat("leave `max_shard_size` out", folder ? ", or give the result the name of a folder" : ""));
}

}  // namespace

Conversion plan_dequantize(const DequantizeOptions& options) {
  std::string text;
  std::unique_ptr<Store> view = open_view(options, text);
  const Store& opened = *view;  // the conversion keeps it
  const ExportTypes types{.kind = ExportTypes::kStored};
  // The name of a torch file is refused as for one file.
  const bool other_format = names_other_format(options.target, false);
  const bool of_folder = is_folder(options.source, options.files);
  const bool folder = of_folder && !other_format && !options.target.ends_with(".safetensors");
  if (!folder && !other_format) refuse_shards_of_a_file(options, of_folder);
  Conversion c = folder
                     ? plan_export_own(std::move(view),
                                       {.source = options.source,
                                        .target = options.target,
                                        .types = types,
                                        .max_shard_bytes = options.max_shard_bytes.value_or(kUsualShardBytes),
                                        .original_files = false,
                                        .threads = options.threads})
                     : plan_one_file(std::move(view), {.source = options.source,
                                                       .target = options.target,
                                                       .files = options.files,
                                                       .types = types,
                                                       .threads = options.threads});
  note_view(c, opened);
  const DequantizedStore& decoded = *dequantized_view(opened);
  c.details.note(decoded.decodes() ? cat("decoded ", text, ", as ", dtype_name(decoded.values()))
                                   : cat("left out ", text));
  return c;
}

}  // namespace mckpt::impl
