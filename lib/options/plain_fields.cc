// Conversions that need no table of the model and no grid.
#include "options/fields.h"

namespace mckpt::impl {
namespace {

template <typename What>
void ends(What& o, FieldVisitor& v, std::string_view source, std::string_view target) {
  v({.name = "source", .value = "SRC", .argument = true, .help = source}, o.source);
  v({.name = "target", .value = "DST", .argument = true, .help = target}, o.target);
}

template <typename What>
void choice_fields(What& o, FieldVisitor& v) {
  v({.name = "include",
     .value = "GLOB",
     .common = true,
     .help = "convert only tensors whose whole name matches (repeatable)"},
    o.include);
  v({.name = "exclude",
     .value = "GLOB",
     .common = true,
     .help = "leave out tensors whose whole name matches (repeatable)"},
    o.exclude);
}

}  // namespace

void fields(ToSafetensors& o, FieldVisitor& v) {
  ends(
      o, v,
      "a checkpoint with the model's own names: torch DCP, rank files of FSDP, verl or DeepSpeed, .pt, or a Hugging Face folder",
      "the safetensors file to make");
  assets_field(o.assets, v, "folder with the model's config.json: says which names the model has");
  v({.name = "dtype",
     .value = "TYPE",
     .words = "keep bf16 fp16 fp32",
     .common = true,
     .help = "data type of floating-point tensors except float8: keep (as stored), bf16, fp16 or fp32"},
    o.dtype);
  dtype_rule_field(o.dtype_rule, v);
  v.casts();
  accept_field(o.accept, v);
  fields(o.files, v);
  model_dict_field(o.model_dict, v);
}

void fields(ToDcp& o, FieldVisitor& v) {
  ends(o, v, "a DCP folder, or a checkpoint with the model's own names", "the DCP folder to make");
  v({.name = "dp",
     .value = "N",
     .common = true,
     .help = "number of ranks that the rows are divided among; by default that of a DCP folder, else 1"},
    o.dp);
  v({.name = "section",
     .value = "NAME",
     .common = true,
     .help =
         "the dict in which the tensors are, as in model. or app.model.; by default the one in `source`, and none for a Hugging Face folder"},
    o.section);
  v({.name = "assets",
     .value = "HF_DIR",
     .help =
         "folder with the model's config.json; needed for the shapes of tensors in files of LOCAL_STATE_DICT"},
    o.assets);
  v({.name = "weights_only",
     .common = true,
     .help = "of a DCP folder: do not copy the states of the optimizer"},
    o.weights_only);
  v({.name = "dtype",
     .value = "TYPE",
     .words = "keep bf16 fp16 fp32",
     .common = true,
     .help =
         "data type of the model's floating-point tensors except float8: keep (as stored), bf16, fp16 or fp32; states of the optimizer keep theirs"},
    o.dtype);
  v.casts();
  accept_field(o.accept, v);
  fields(o.files, v);
  model_dict_field(o.model_dict, v);
}

void fields(Dequantize& o, FieldVisitor& v) {
  ends(o, v, "a Hugging Face folder of quantised weights, or one safetensors file",
       "the folder to make; one file if SRC is one, or if the name ends in .safetensors");
  v.casts();
  accept_field(o.accept, v);
  v({.name = "dtype",
     .value = "TYPE",
     .words = "auto bf16 fp16 fp32",
     .common = true,
     .help =
         "data type of the weights that are quantised: auto (as config.json says, else bf16), bf16, fp16 or fp32; other tensors keep theirs"},
    o.dtype);
  v({.name = "max_shard_size",
     .common = true,
     .bytes = true,
     .help = "most bytes of tensors in one file of a folder; by default 5GB"},
    o.max_shard_size);
  file_fields(o.files, v);
}

void fields(Quantize& o, FieldVisitor& v) {
  ends(o, v, "a Hugging Face folder of plain numbers", "the folder to make");
  v({.name = "scheme",
     .value = "SCHEME",
     .flags = "scheme to quantize",
     .words = "like-source fp8-block mxfp4",
     .common = true,
     .help =
         "fp8-block (128 x 128 codes a scale, as DeepSeek-V3), mxfp4 (experts, as gpt-oss), or like-source"},
    o.scheme);
  v({.name = "like",
     .value = "HF_DIR",
     .flags = "like assets",
     .common = true,
     .help = "the quantised model that `source` was made of: `scheme` like-source"},
    o.like);
  v({.name = "max_shard_size",
     .common = true,
     .bytes = true,
     .help = "most bytes of tensors in one file; by default 5GB, or the files of `like`"},
    o.max_shard_size);
  file_fields(o.files, v);
}

void fields(ToHdf5& o, FieldVisitor& v) {
  ends(o, v, "a checkpoint of any format", "the folder to make; a name that ends in .h5 is one file");
  v({.name = "single_file",
     .common = true,
     .help = "one HDF5 file, not a folder with a file for each file of `source`, whatever its name"},
    o.single_file);
  assets_field(
      o.assets, v,
      "folder with config.json and tokenizer that go into the archive; by default those that are with `source`");
  accept_field(o.accept, v);
  // An adapter's base is refused where the conversion is planned, which says what to do instead.
  InSettingsAlone unflagged(v);
  fields(o.files, unflagged);
}

void fields(FromHdf5& o, FieldVisitor& v) {
  ends(o, v, "an archive that convert to-hdf5 made",
       "the folder to make, or the file if `source` has only one");
  file_fields(o.files, v);
}

void fields(PtToSafetensors& o, FieldVisitor& v) {
  ends(o, v, "a .pt file, or a folder of them", "where the result goes: a safetensors file");
  choice_fields(o, v);
  v({.name = "tensors_only",
     .common = true,
     .help = "write only tensors; skip args, iteration number and other objects"},
    o.tensors_only);
  file_fields(o.files, v);
}

void fields(ToPt& o, FieldVisitor& v) {
  ends(o, v, "a safetensors file, or a folder of them", "where the result goes: a .pt file");
  choice_fields(o, v);
  file_fields(o.files, v);
}

}  // namespace mckpt::impl
