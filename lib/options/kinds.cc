// Words are looked up in the order of the rows.
#include "options/kinds.h"

#include <algorithm>
#include <vector>

#include "core/base/error.h"
#include "core/base/one_of.h"
#include "options/fields.h"

namespace mckpt::impl {
namespace {

template <typename What>
AnyConversion empty_of() {
  return What{};
}

AnyConversion relayer_of(const char* way) {
  Relayer out;
  out.way = way;
  return out;
}

constexpr ConversionKind kKinds[] = {
    {"hf-to-fsdp", "", "", "make the checkpoint of a Megatron-FSDP run of any grid from a Hugging Face model",
     "", empty_of<ToFsdp>},
    {"fsdp-to-hf", "hf", "to-hf", "make a Hugging Face folder, as `mckpt export` does",
     "a Hugging Face folder, of a checkpoint of a training run; as mckpt.export()", empty_of<ToHf>},
    {"to-mcore", "mcore", "", "make the torch_dist checkpoint of any Megatron run",
     "torch_dist of Megatron-Core, of any checkpoint", empty_of<ToMcore>},
    {"reshard", "reshard", "", "write a checkpoint for another grid, in its own format",
     "the same format for another grid: fsdp_dtensor, torch_dist, other DCP, files of Megatron's ranks (weights only)",
     empty_of<Reshard>},
    {"ungroup", "ungroup", "", "remove the groups of hybrid layers: [*-]M becomes *-M",
     "the same format, with the layers of groups as layers of their own",
     [] { return relayer_of("ungroup"); }},
    {"group", "group", "", "group the layers of a hybrid checkpoint: *-M becomes [*-]M",
     "the same format, with layers in groups", [] { return relayer_of("group"); }},
    {"hybrid-to-gpt", "hybrid-to-gpt", "", "make a GPT model's checkpoint from a hybrid one",
     "the same format, with names of layers as a GPT model has them",
     [] { return relayer_of("hybrid-to-gpt"); }},
    {"gpt-to-hybrid", "gpt-to-hybrid", "", "make a hybrid model's checkpoint from that of a GPT model",
     "the same format, with names of layers as a hybrid model has them",
     [] { return relayer_of("gpt-to-hybrid"); }},
    {"pt-to-safetensors", "pt-to-safetensors", "", "copy the tensors of a .pt file into a safetensors file",
     "one safetensors file with the tensors of .pt files as they are", empty_of<PtToSafetensors>, false,
     false},
    {"safetensors-to-pt", "torch-file", "", "copy the tensors of safetensors files into a .pt file",
     "ONE FILE of torch.save, .pt, .pth, .bin or .ckpt, with the tensors of safetensors files as they are",
     empty_of<ToPt>, false, false},
    {"to-safetensors", "safetensors", "", "make one safetensors file of an FSDP2, verl or ZeRO model",
     "one safetensors file, of a Hugging Face model or a checkpoint with its names", empty_of<ToSafetensors>,
     true, false},
    {"to-fsdp", "fsdp", "hf-to-fsdp", "make a Megatron-FSDP checkpoint from any other",
     "fsdp_dtensor of Megatron-FSDP, of any checkpoint; of Megatron's with the states of the optimizer",
     empty_of<ToFsdp>},
    {"to-pt", "ranks", "pt to-ranks", "write files of Megatron's ranks (mp_rank_*), weights only",
     "A FOLDER with the files of Megatron's ranks, mp_rank_*/model_optim_rng.pt, of any checkpoint",
     empty_of<ToRanks>},
    {"dequantize", "dequantize", "", "write the values of a model in FP8, MXFP4, NVFP4 or INT4",
     "a Hugging Face folder with plain numbers, of a quantised one", empty_of<Dequantize>},
    {"quantize", "quantize", "", "write a model in blocks of FP8, in MXFP4, or as another one",
     "a Hugging Face folder with codes and scales, of one with plain numbers", empty_of<Quantize>},
    {"to-dcp", "dcp", "", "make a torch DCP folder of a model or another DCP folder",
     "a torch DCP folder, of a Hugging Face model or a checkpoint with its names", empty_of<ToDcp>},
    {"to-hdf5", "hdf5", "", "archive any checkpoint in HDF5; h5py sees whole tensors",
     "an HDF5 archive with all files, of any checkpoint", empty_of<ToHdf5>},
    {"from-hdf5", "from-hdf5", "", "write the files that an archive was made of",
     "the files again, of such an archive", empty_of<FromHdf5>},
};

bool is_word_of(const ConversionKind& kind, std::string_view word) {
  if (kind.word.empty()) return false;
  return word == kind.word || word == kind.name || std::ranges::count(words_of(kind.others), word) > 0;
}

}  // namespace

std::span<const ConversionKind> conversion_kinds() { return kKinds; }

const ConversionKind* conversion_mode(std::string_view name) {
  auto row = std::ranges::find(kKinds, name, &ConversionKind::name);
  return row == std::end(kKinds) ? nullptr : row;
}

const ConversionKind& conversion_of_word(std::string_view word) {
  std::vector<std::string> known, short_words;
  for (const ConversionKind& kind : kKinds) {
    if (is_word_of(kind, word)) return kind;
    if (kind.word.empty()) continue;
    short_words.emplace_back(kind.word), known.emplace_back(kind.word), known.emplace_back(kind.name);
    for (const std::string& other : words_of(kind.others)) known.push_back(other);
  }
  Error e(Code::kUsage, "there is no such kind of conversion");
  e.expected(one_of(short_words)).found(escaped(word));
  if (std::string_view near = nearest(word, known); !near.empty()) e.help(cat("did you mean `", near, "`?"));
  throw e;
}

void fields(AnyConversion& conversion, FieldVisitor& v) {
  std::visit([&](auto& what) { fields(what, v); }, conversion);
}

const std::string& source_of(const AnyConversion& conversion) {
  return std::visit([](const auto& what) -> const std::string& { return what.source; }, conversion);
}

const std::string& target_of(const AnyConversion& conversion) {
  return std::visit([](const auto& what) -> const std::string& { return what.target; }, conversion);
}

}  // namespace mckpt::impl
