// Makes a family of the rows of a map file alone (base "none"): sections in the order of the rows, which is
// that in which Megatron registers the parameters.
//
//   embedding.word_embeddings.weight                      a section of the first stage
//   decoder.layers.{L}.self_attention.linear_qkv.weight   the layers; each row is in the list of its mixer, or of its
//   decoder.layers.{L}.mlp.linear_fc1.weight                feed-forward part: attention, dense, moe
//   decoder.final_layernorm.weight                        a section of the stage with the final norm
//   output_layer.weight, "needs": "untied"                a section of the output layer's stage. If the model is tied
//                                                           and the pipeline has several stages, that stage has a
//                                                           copy of the embedding; its row is added automatically
#include <algorithm>

#include "core/base/error.h"
#include "mappings/map_file/rows.h"

namespace mckpt::impl {
namespace {

constexpr std::string_view kOwnName = "own", kEmbedding = "embedding.word_embeddings.weight",
                           kOutput = "output_layer.weight";

// The list of a layer's rows by its name in map files.
struct NamedList {
  std::string_view name;
  std::span<const Row> LayerRows::*list;
};
constexpr NamedList kLayerLists[] = {{"attention", &LayerRows::attention},
                                     {"latent_attention", &LayerRows::latent_attention},
                                     {"gdn", &LayerRows::gdn},
                                     {"mamba", &LayerRows::mamba},
                                     {"dense", &LayerRows::dense},
                                     {"moe", &LayerRows::moe}};

// pre: the row is one of a layer. Throws kBadMap for a kind that does not exist.
std::string_view kind_of(const MapRow& row) {
  if (row.layer.empty()) return layer_kind_of(row.megatron);
  std::vector<std::string_view> names;
  for (const NamedList& l : kLayerLists) {
    if (l.name == row.layer) return l.name;
    names.push_back(l.name);
  }
  throw Error(Code::kBadMap,
              cat("row ", escaped(row.megatron), ": there is no kind of layer '", escaped(row.layer), "'"))
      .expected(listed(names, names.size()));
}

// Whether a row behind the layers is in the decoder: the decoder ends with its final norm, and the output
// layer is outside of it.
bool is_in_decoder(const MapRow& row) {
  return row.megatron.starts_with("decoder.") || row.megatron.find(".decoder.") != row.megatron.npos;
}

bool ends_with_name(const MapRow& row, std::string_view name) {
  return std::string_view(row.megatron).ends_with(name);
}

}  // namespace

std::string_view layer_prefix(std::string_view megatron) {
  constexpr std::string_view kNumber = "{L}.";
  std::size_t at = megatron.find(kNumber);
  return at == megatron.npos ? "" : megatron.substr(0, at + kNumber.size());
}

std::string_view layer_kind_of(std::string_view megatron) {
  std::string_view leaf = megatron.substr(layer_prefix(megatron).size());
  for (std::string_view front : {"mlp.router.", "mlp.experts.", "mlp.shared_experts.", "pre_mlp_layernorm."})
    if (leaf.starts_with(front)) return "moe";
  return leaf.starts_with("mlp.") ? "dense" : "attention";
}

OwnFamily::OwnFamily(const MapFile& file) {
  family_.name = kOwnName;
  family_.summary = "the family of a map file";
  std::vector<MapRow> first, layers, last;
  for (const MapRow& row : file.rows)
    (!layer_prefix(row.megatron).empty() ? layers : layers.empty() ? first : last).push_back(row);
  if (layers.empty())
    throw Error(Code::kBadMap, "a map without a base has no rows of layers")
        .expected("Megatron names with {L}")
        .found(counted(std::ssize(file.rows), "row"));
  if (!file.remove.empty()) throw Error(Code::kBadMap, "a map without a base has nothing to remove");
  add_once(first, Stage::kFirst);
  add_layers(layers);
  for (const MapRow& row : last) add_once({row}, is_in_decoder(row) ? Stage::kFinalNorm : Stage::kOutput);
  add_tied_output(file);
  finish(file);
}

void OwnFamily::add_once(const std::vector<MapRow>& rows, Stage stage) {
  if (rows.empty()) return;
  Rows& made = rows_.emplace_back();
  for (const MapRow& row : rows) made.push_back(row_of(row, row.megatron));
  sections_.push_back({Scope::kOnce, "", "", made, nullptr, stage});
}

// Attention and latent attention share the rows that name no kind: a model has one of the two.
void OwnFamily::add_layers(const std::vector<MapRow>& rows) {
  const std::string prefix(layer_prefix(rows[0].megatron));
  LayerRows& layer = layers_.emplace_back();
  for (const NamedList& l : kLayerLists) {
    Rows made;
    for (const MapRow& row : rows) {
      if (layer_prefix(row.megatron) != prefix)
        throw Error(Code::kBadMap, "the layers of a map without a base have one name")
            .expected(escaped(prefix))
            .found(escaped(row.megatron));
      bool shared = row.layer.empty() && l.name == "latent_attention" && kind_of(row) == "attention";
      if (kind_of(row) == l.name || shared)
        made.push_back(row_of(row, std::string_view(row.megatron).substr(prefix.size())));
    }
    layer.*l.list = rows_.emplace_back(std::move(made));
  }
  sections_.push_back({Scope::kLayers, keep(prefix), "", {}, &layer});
}

// The row of the copy that the stage of the output layer has, if that is one that tied models lack.
void OwnFamily::add_tied_output(const MapFile& file) {
  auto output = std::ranges::find_if(file.rows, [](const MapRow& row) {
    return ends_with_name(row, kOutput) && row.needs == Needs::kUntied;
  });
  auto embedding =
      std::ranges::find_if(file.rows, [](const MapRow& row) { return ends_with_name(row, kEmbedding); });
  if (output == file.rows.end() || embedding == file.rows.end()) return;
  MapRow copy = *output;
  copy.sources = embedding->sources;
  copy.needs = Needs::kTied;
  add_once({copy}, Stage::kTiedOutput);
}

}  // namespace mckpt::impl
