// mckpt formats: the file formats and the data types that mckpt knows.
//
//   format              read  written  recognised by
//   safetensors         yes   yes      a length of 8 bytes and a JSON header
//   torch.save legacy   yes   no       torch's number in a pickle, before torch 1.6
//   GGUF                no    no       its first 4 bytes
//
// The table of formats is written here by hand; a format that is read or written newly needs a row. Data
// types come from the table of the library.
#include "core/base/error_code.h"
#include "core/base/text.h"
#include "core/items/dtype.h"
#include "io/store/format.h"
#include "tools/commands/commands.h"
#include "tools/options/command_line.h"
#include "tools/render/answer_json.h"
#include "tools/render/text_table.h"

namespace mckpt::impl {
namespace {

// As `inspect` calls it, and what it is recognised by. Formats that are not read are named when they are met.
struct FileFormat {
  std::string_view name, recognised_by;
  bool reads = true, writes = false;
};

constexpr FileFormat kFileFormats[] = {
    {format_text(Format::kSafetensors), "a length of 8 bytes and a JSON header", true, true},
    {format_text(Format::kSafetensorsFolder),
     "*.safetensors with or without *.safetensors.index.json; torch DCP's shard-*-model-*", true, true},
    {format_text(Format::kTorchZip), "a zip archive with data.pkl (.pt .pth .bin .ckpt)", true, true},
    {format_text(Format::kTorchLegacy), "torch's magic number in a pickle; the format before torch 1.6"},
    {format_text(Format::kTorchShards), "pytorch_model-*-of-*.bin"},
    {format_text(Format::kTorchRanks), "model_world_size_*_rank_*.pt, pytorch_model_fsdp_*_rank*.bin"},
    {format_text(Format::kTorchFlat),
     "the same names, and _flat_param in the files (FSDP1's LOCAL_STATE_DICT)"},
    {format_text(Format::kTorchFiles), "other .pt .pth .bin .ckpt files of a folder"},
    {format_text(Format::kDeepSpeed),
     "*_model_states.pt and *_optim_states.pt, or the folder that latest names"},
    {format_text(Format::kMegatronRanks), "mp_rank_* folders", true, true},
    {format_text(Format::kDcp), ".metadata and *.distcp of torch.distributed.checkpoint"},
    {format_text(Format::kDcpFsdpDtensor), "DCP with the names of a Megatron-FSDP save by Megatron-LM", true,
     true},
    {format_text(Format::kDcpMegatronFsdp), "DCP with the names of a Megatron-FSDP module"},
    {format_text(Format::kDcpTorchDist),
     "DCP with metadata.json, or with the names of Megatron's dist_checkpointing", true, true},
    {format_text(Format::kDcpStateDict), "DCP with the names of torch's get_state_dict; Megatron-FSDP v2",
     true, true},
    {"Megatron run", "latest_checkpointed_iteration.txt: the iter_* or release folder that it names", true,
     true},
    {format_text(Format::kHdf5),
     "the signature of HDF5 in 8 bytes, first or after a user block of 512, 1024, 2048 ... bytes"},
    {"TorchScript", "a zip archive with code", false},
    {"torch.save tar", "a tar archive, before torch 0.2", false},
    {"GGUF", "the signature of GGUF in the first 4 bytes", false},
    {"NumPy", "the signature of NumPy in the first 6 bytes", false},
};

void write_json(Output& out) {
  AnswerJson json(out);
  json.begin_answer("formats", true).key("formats").begin_array();
  for (const FileFormat& f : kFileFormats)
    json.begin_object()
        .field("name", f.name)
        .field("recognised_by", f.recognised_by)
        .field("reads", f.reads)
        .field("writes", f.writes)
        .end_object();
  json.end_array().key("dtypes").begin_array();
  for (const DTypeInfo& d : all_dtypes()) {
    json.begin_object().field("name", d.name).field("bits", d.bits).field("in_torch", d.in_torch);
    d.safetensors.empty() ? json.null_field("safetensors") : json.field("safetensors", d.safetensors);
    json.end_object();
  }
  json.end_array();
  json.end_answer();
}

// Two tables: formats, then data types with their names in torch and in safetensors.
void write_text(Output& out) {
  using enum Align;
  TextTable formats({{"format", kLeft}, {"read", kLeft}, {"written", kLeft}, {"recognised by", kLeft, true}});
  auto yes_or_no = [](bool v) { return std::string(v ? "yes" : "no"); };
  for (const FileFormat& f : kFileFormats)
    formats.row({std::string(f.name), yes_or_no(f.reads), yes_or_no(f.writes), std::string(f.recognised_by)});
  formats.write(out);
  out.line("");
  TextTable dtypes({{"dtype", kLeft}, {"safetensors", kLeft}, {"bits", kRight}});
  for (const DTypeInfo& d : all_dtypes())
    dtypes.row({std::string(d.name), d.safetensors.empty() ? "-" : std::string(d.safetensors), cat(d.bits)});
  dtypes.write(out);
}

}  // namespace

Exit formats_command(CommandLine& line) {
  line.example("mckpt formats");
  line.example("mckpt formats --json");
  line.example("mckpt formats | grep torch");
  line.parse();
  Output out(line.flags());
  out.json() ? write_json(out) : write_text(out);
  out.flush();
  return Exit::kOk;
}

}  // namespace mckpt::impl
