// Unrolls the sections of a family over the layers, experts and MTP depths of a model.
//
//   sections     embedding   layers         norm   mtp head, layers, tail   output
//   2 layers,    embedding   layer 0, 1     norm   head 0, layer 0, tail 0   output
//   2 depths                                       head 1, layer 0, tail 1
//
//   rows of experts           linear_fc1.weight0, weight1, ..., then linear_fc2.weight0, weight1, ...
//   rows that alternate       weight0, bias0, weight1, bias1, ...
#include "mappings/model/walk.h"

#include "mappings/config.h"
#include "mappings/family.h"
#include "mappings/needs.h"

namespace mckpt::impl {
namespace {

bool is_mtp(Scope scope) {
  return scope == Scope::kMtpHead || scope == Scope::kMtpLayers || scope == Scope::kMtpTail;
}

// Gives every site its FSDP unit and calls the visitor.
class Walker {
 public:
  Walker(const ModelConfig& model, const std::function<void(const Site&)>& visit)
      : model_(model), visit_(visit) {}

  // Calls the visitor for each time that the section occurs in the model.
  void section(const Section& section) {
    switch (section.scope) {
      case Scope::kOnce:
        return visit_(site(section));
      case Scope::kLayers:
        return layers(section);
      case Scope::kMergers:
        for (i64 m = 0; m < model_.vision.deepstack; m++) {
          Site s = site(section);
          s.numbers['M'] = m;
          visit_(s);
        }
        return;
      case Scope::kMtpHead:
        return visit_(mtp_site(section, 0));
      case Scope::kMtpTail:
        return visit_(mtp_site(section, std::ssize(model_.mtp.layers) - 1));
      case Scope::kMtpLayers:
        for (i64 i = 0; i < std::ssize(model_.mtp.layers); i++) {
          Site s = mtp_site(section, i);
          set_layer(s, model_.mtp.layers[i]);
          if (!model_.mtp.sizes_of_depths.empty()) set_sizes(s, model_.mtp.sizes_of_depths[depth_]);
          s.unit = unit_++;
          visit_(s);
        }
        return;
    }
  }

  void set_depth(i64 depth) { depth_ = depth; }

 private:
  // A site without numbers.
  Site site(const Section& section) {
    Site s;
    s.section = &section;
    s.numbers['S'] = model_.moe.experts;
    s.tower = &tower_of(model_, section.tower);
    return s;
  }

  void set_sizes(Site& s, i32 sizes) {
    s.sizes = sizes;
    s.tower = &sizes_of(model_, s.section->tower, sizes);
  }
  void set_layer(Site& s, const LayerSpec& layer) {
    s.layer = &layer;
    set_sizes(s, layer.sizes);
  }

  void layers(const Section& section) {
    Site s = site(section);
    const std::vector<LayerSpec>& layers = s.tower->layers;
    for (i64 n = 0; n < std::ssize(layers); n++) {
      s.numbers['L'] = n;
      set_layer(s, layers[n]);
      s.unit = section.own_layers ? unit_++ : -1;
      visit_(s);
    }
  }

  // M: depth; I: layer in the depth; F: layer counted over all depths; N: the number in files that count
  // MTP layers behind the decoder's.
  Site mtp_site(const Section& section, i64 inner) {
    Site s = site(section);
    s.numbers['M'] = depth_;
    s.numbers['I'] = inner;
    s.numbers['F'] = depth_ * std::ssize(model_.mtp.layers) + inner;
    s.numbers['N'] = std::ssize(model_.text.layers) + depth_;
    return s;
  }

  const ModelConfig& model_;
  const std::function<void(const Site&)>& visit_;
  i64 unit_ = 0, depth_ = 0;
};

std::span<const Row> mixer_rows(const LayerRows& rows, Mixer mixer) {
  switch (mixer) {
    case Mixer::kNone:
      return {};
    case Mixer::kAttention:
      return rows.attention;
    case Mixer::kSparseAttention:
      return rows.sparse_attention;
    case Mixer::kLatentAttention:
      return rows.latent_attention;
    case Mixer::kIndexedAttention:
      return rows.indexed_attention;
    case Mixer::kGdn:
      return rows.gdn;
    case Mixer::kMamba:
      return rows.mamba;
    case Mixer::kAttentionAndMamba:
      return rows.attention_and_mamba;
  }
  return {};
}

std::string named(std::string_view prefix, std::string_view name, const Site& site, i64 expert) {
  Numbers numbers = site.numbers;
  numbers['E'] = expert;
  numbers['S'] += expert;
  std::string out;
  out.reserve(prefix.size() + name.size() + 8);
  append_name(out, prefix, numbers);
  append_name(out, name, numbers);
  return out;
}

}  // namespace

const TowerConfig& tower_of(const ModelConfig& model, Tower tower) {
  switch (tower) {
    case Tower::kText:
      break;
    case Tower::kVision:
      return model.vision_tower;
    case Tower::kAudio:
      return model.audio_tower;
  }
  return model.text;
}

const TowerConfig& sizes_of(const ModelConfig& model, Tower tower, i32 sizes) {
  return sizes == 0 ? tower_of(model, tower) : model.layer_sizes[sizes - 1];
}

void each_site(const Family& family, const ModelConfig& model,
               const std::function<void(const Site&)>& visit) {
  Walker walker(model, visit);
  std::span<const Section> sections = family.sections;
  for (std::size_t i = 0; i < sections.size(); i++) {
    if (!is_mtp(sections[i].scope)) {
      walker.section(sections[i]);
      continue;
    }
    std::size_t end = i;
    while (end < sections.size() && is_mtp(sections[end].scope)) end++;
    for (i64 depth = 0; depth < model.mtp.depths; depth++) {
      walker.set_depth(depth);
      for (const Section& section : sections.subspan(i, end - i)) walker.section(section);
    }
    i = end - 1;
  }
}

std::array<std::span<const Row>, 2> rows_of(const Site& site) {
  if (!site.layer) return {site.section->rows, std::span<const Row>{}};
  const LayerRows& rows = *site.section->layer;
  std::span<const Row> ffn;
  if (site.layer->ffn == Ffn::kDense) ffn = rows.dense;
  if (site.layer->ffn == Ffn::kMoe) ffn = rows.moe;
  return {mixer_rows(rows, site.layer->mixer), ffn};
}

void each_row(const Site& site, const ModelConfig& model, Needs form, i64 first_expert, i64 last_expert,
              const std::function<void(const Row&, i64)>& visit) {
  for (std::span<const Row> rows : rows_of(site)) {
    for (std::size_t i = 0; i < rows.size(); i++) {
      if (!holds(rows[i].needs, model, *site.tower, form)) continue;
      if (!rows[i].expert()) {
        visit(rows[i], -1);
        continue;
      }
      std::size_t end = i + 1;
      while (end < rows.size() && rows[end].alternates) end++;
      for (i64 expert = first_expert; expert < last_expert; expert++)
        for (const Row& row : rows.subspan(i, end - i)) visit(row, expert);
      i = end - 1;
    }
  }
}

std::string megatron_name(const Site& site, const Row& row, i64 expert) {
  return named(site.section->megatron, row.megatron, site, expert);
}

std::string source_name(const Site& site, const Row& row, std::string_view name, i64 expert) {
  return named(row.whole_names ? "" : site.section->hugging_face, name, site, expert);
}

std::string other_source_name(const Site& site, const Row& row, std::string_view name, i64 expert) {
  return named(row.whole_names ? "" : site.section->also, name, site, expert);
}

}  // namespace mckpt::impl
