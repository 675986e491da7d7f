// The numbers of every config.json of test_data: all numbers of the model, or the error; also of each config
// without one of its entries, and under the model type of every family. test_data/golden/configs.txt has a
// sum of each of these answers, so that a family whose entries are written another way is seen to say the
// same.
//
//   golden/models/llama3  2a9efc2e 77b5d1f0 c1f2a9d3      as it is | without each entry | as every family
//
// MCKPT_CONFIGS=FOLDER prints the answers for the configs below a folder instead; MCKPT_UPDATE=1 writes the file.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <sstream>

#include "core/base/error.h"
#include "core/items/dtype.h"
#include "hf/config/json.h"
#include "io/file/crc32.h"
#include "io/json/json.h"
#include "io/json/json_text.h"
#include "mappings/family.h"
#include "mappings/registry.h"

namespace mckpt::impl {
namespace same_numbers_test {

std::string layers_text(const std::vector<LayerSpec>& layers) {
  std::string out;
  for (const LayerSpec& l : layers)
    out += cat(static_cast<int>(l.mixer), static_cast<int>(l.ffn), l.sizes,
               l.kind == AttentionKind::kOne ? "" : cat(" kind ", static_cast<int>(l.kind)), ",");
  return out;
}

std::string tower_text(const TowerConfig& t) {
  return cat(t.hidden, " ", t.heads, " ", t.kv_groups, " ", t.head_dim, " ", t.output_gate, t.qkv_bias,
             t.proj_bias, t.qk_norm, static_cast<int>(t.key_values), t.sinks, " ", t.ffn, " ", t.gated_mlp,
             t.swiglu, " ", layers_text(t.layers), t.value_dim, t.head_gates, "; ");
}

std::string model_text(const HfConfig& config) {
  const ModelConfig& m = config.model;
  std::string out = cat(m.model_type, " ", m.vocab, " ", m.tied, m.layer_norms, m.zero_centered_norms, " ",
                        m.dtype ? dtype_name(*m.dtype) : "-", " ", tower_text(m.text),
                        tower_text(m.vision_tower), tower_text(m.audio_tower));
  for (const TowerConfig& t : m.layer_sizes) out += tower_text(t);
  if (m.own_modules) out += "own modules ";
  out +=
      cat(m.layer_input, " ", m.no_context_parallel, " moe ", m.moe.experts, " ", m.moe.ffn, " ",
          m.moe.shared_ffn, " ", m.moe.latent, " ", m.moe.expert_bias, m.moe.shared_gate, m.moe.router_bias);
  out += cat(" mla ", m.mla.q_lora, " ", m.mla.kv_lora, " ", m.mla.nope, " ", m.mla.rope, " ", m.mla.v_dim,
             " indexer ", m.indexer.heads, " ", m.indexer.head_dim);
  out += cat(" gdn ", m.gdn.key_heads, " ", m.gdn.value_heads, " ", m.gdn.key_dim, " ", m.gdn.value_dim, " ",
             m.gdn.conv_kernel);
  out += cat(" mamba ", m.mamba.heads, " ", m.mamba.head_dim, " ", m.mamba.state, " ", m.mamba.groups, " ",
             m.mamba.conv_kernel, " ", m.mamba.norm);
  const VisionConfig& v = m.vision;
  out += cat(" vision ", v.in_channels, " ", v.patch, " ", v.temporal_patch, " ", v.merge, " ", v.positions,
             " ", v.out_hidden, " ", v.deepstack, " ", v.projector, " ", v.standardized, " ", v.rows, " ",
             v.columns, " runs ", m.tp_within_groups, m.listed_layers, m.mtp.one_stage);
  for (i32 sizes : m.mtp.sizes_of_depths) out += cat(" ", sizes);
  out += cat(" audio ", m.audio.mel_bins, " ", m.audio.channels, " ", m.audio.bins, " ", m.audio.positions,
             " ", m.audio.out_hidden);
  // Numbers of few families follow where a model has them.
  if (m.vision_tower.whole_groups || m.layers_apart || v.unstated || m.moe.second_ffn > 0 ||
      v.class_tokens > 0)
    out += cat(" ", m.vision_tower.whole_groups, m.layers_apart, v.video_embedder, v.unstated, v.heads_stated,
               " ", m.moe.second_ffn, " ", v.temporal_merge, " ", v.class_tokens, " ", m.audio.kernel, " ",
               m.audio.projector);
  if (m.audio.last_channels > 0 || m.vision_tower.clipped)
    out += cat(" ", m.audio.last_channels, " ", m.audio.kernel, " clipped ", m.vision_tower.clipped,
               m.audio_tower.clipped);
  const NGramConfig& g = m.ngrams;
  if (m.compressed.mix_rank > 0) {
    out += cat(" streams ", m.compressed.streams, " ", m.compressed.mix_rank, " ngrams ", g.size, " ",
               g.heads, " ", g.width, " ", g.parts, " ", g.kernel);
    for (const TowerConfig& t : m.layer_sizes) out += cat(" ", t.ngram_rows);
  }
  return out + cat(" mtp ", m.mtp.depths, " ", m.mtp.stated, " ", layers_text(m.mtp.layers));
}

// The numbers, or the error with its facts.
std::string answer(const std::string& text) {
  try {
    return model_text(read_hf_config(text, true));
  } catch (const Error& e) {
    std::string out = cat(code_name(e.code()), " ", e.what(), " ", e.help());
    for (const std::string& note : e.notes()) out += cat(" ", note);
    return out;
  }
}

// The text without each member of the object at `object`, and of the objects in it.
void each_without(const std::string& text, std::size_t object,
                  const std::function<void(const std::string&)>& visit) {
  std::vector<std::pair<std::string, std::size_t>> members;
  JsonText(text).each_member(object, [&](std::string_view key, std::size_t begin, std::size_t) {
    members.emplace_back(key, begin);
    return true;
  });
  for (const auto& [key, value] : members) {
    visit(with_member(text, object, key, "null"));
    visit(with_member(text, object, key, "0"));
    const JsonExtent at = JsonText(text).find(object, key);
    // A name that nobody asks for.
    std::string other = text;
    other.insert(at.begin + 1, "_");
    visit(other);
    if (text[value] == '{') each_without(text, value, visit);
  }
}

std::string with_type(const std::string& text, std::string_view type) {
  return with_member(text, 0, "model_type", cat("\"", type, "\""));
}

struct Answers {
  std::string own{}, without{}, families{};
};

Answers answers_of(const std::string& text) {
  Answers out{.own = answer(text)};
  try {
    if (check_json(text, JsonNumbers::kPython) != JsonType::kObject) return out;
  } catch (const Error&) {
    return out;
  }
  each_without(text, 0, [&](const std::string& less) { out.without += answer(less) + "\n"; });
  for (const Family* family : all_families())
    out.families += cat(family->name, ": ", answer(with_type(text, family->model_types[0])), "\n");
  return out;
}

std::vector<std::string> configs_below(const std::string& root) {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root))
    if (entry.is_regular_file() && entry.path().filename() == "config.json")
      out.push_back(entry.path().string());
  std::ranges::sort(out);
  return out;
}

std::string text_of(const std::string& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

std::string sum_of(const std::string& text) {
  return crc32_text(crc32(0, {reinterpret_cast<const u8*>(text.data()), text.size()}));
}

TEST(SameNumbers, AreReadOfEveryConfig) {
  if (const char* root = std::getenv("MCKPT_CONFIGS")) {
    for (const std::string& path : configs_below(root)) {
      const Answers a = answers_of(text_of(path));
      std::cout << path << "\n" << a.own << "\n" << a.without << a.families;
    }
    return;
  }
  const std::string root = MCKPT_TEST_DATA, golden = root + "/golden/configs.txt";
  std::string found;
  i64 read = 0;
  for (const std::string& path : configs_below(root)) {
    const Answers a = answers_of(text_of(path));
    read += !a.own.starts_with("MC");
    found += cat(path.substr(root.size() + 1, path.size() - root.size() - sizeof "/config.json"), " ",
                 sum_of(a.own), " ", sum_of(a.without), " ", sum_of(a.families), "\n");
  }
  EXPECT_GT(read, 60);
  if (std::getenv("MCKPT_UPDATE")) std::ofstream(golden) << found;
  std::stringstream want(text_of(golden)), got(found);
  const char* how =
      "if these answers are right, MCKPT_UPDATE=1 writes golden/configs.txt; a new family changes "
      "the last sum of each line";
  if (text_of(golden) != found) std::cout << how << "\n";
  for (std::string a, b; std::getline(want, a) && std::getline(got, b);) EXPECT_EQ(b, a);
  EXPECT_EQ(std::ranges::count(found, '\n'), std::ranges::count(text_of(golden), '\n'));
}

}  // namespace same_numbers_test
}  // namespace mckpt::impl
