// The table, and the search for its names in longer ones. Usual names are distinct wherever they occur; other
// names are short ("norm."), so they are looked for only directly behind a layer.
#include "core/hybrid/spellings.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/base/one_of.h"
#include "core/hybrid/kind.h"
#include "core/hybrid/spelled.h"

namespace mckpt::impl {
namespace {

using enum SpellingKind;

// Megatron's MambaLayer builds its norm after the mixer, and a mixer its convolution after in_proj; other
// layers build a norm before the module that it is for. The norms of queries and keys are the last modules of
// latent attention.
constexpr OtherName kTable[] = {
    {kSubmoduleConv, "M", "mixer.conv1d_", "mixer.conv1d.", "mixer.in_proj.", true},
    {kUnfusedNorm, "M", "mixer.in_proj.layer_norm_", "norm.", "mixer.", true},
    {kUnfusedNorm, "*", "self_attention.linear_qkv.layer_norm_", "input_layernorm.", "self_attention."},
    {kUnfusedNorm, "G", "self_attention.in_proj.layer_norm_", "input_layernorm.", "self_attention."},
    {kUnfusedNorm, "+D", "self_attention.linear_q_up_proj.layer_norm_", "self_attention.q_layernorm.",
     "self_attention.", true},
    {kUnfusedNorm, "+D", "self_attention.linear_kv_up_proj.layer_norm_", "self_attention.kv_layernorm.",
     "self_attention.", true},
    {kUnfusedNorm, "-", "mlp.linear_fc1.layer_norm_", "pre_mlp_layernorm.", "mlp."},
    {kFinalNorm, "", kHybridFinalNorm, kGptFinalNorm},
    {kFinalNorm, "", kGptFinalNorm, kHybridFinalNorm},
};

constexpr int kRows = static_cast<int>(std::size(kTable));

struct Word {
  SpellingKind why;
  std::string_view word;
};
constexpr Word kWords[] = {{kSubmoduleConv, "submodule-conv"}, {kUnfusedNorm, "unfused-norms"}};

constexpr std::string_view kLayers = "layers.";

bool is_leaf(std::string_view rest) { return rest.starts_with("weight") || rest.starts_with("bias"); }
// Whether `rest` is a weight or a bias of the module, which ends with a dot.
bool is_in(std::string_view rest, std::string_view module) {
  return rest.starts_with(module) && is_leaf(rest.substr(module.size()));
}

bool is_of_kind(const OtherName& row, LayerKind kind) {
  return std::ranges::any_of(row.symbols, [&](char s) { return find_layer_kind(s)->kind == kind; });
}

// The module that has the parameter under its usual name: "self_attention.linear_qkv.".
std::string_view owner_of(const OtherName& row) { return row.usual.substr(0, row.usual.rfind('.') + 1); }

}  // namespace

std::span<const OtherName> other_names() { return kTable; }

Spelling spelling_of(std::span<const std::string> words, bool rank_files) {
  Spelling out;
  for (const std::string& word : words) {
    if (word == kUsualWord && words.size() > 1)
      throw Error(Code::kUsage, cat("`spelling` ", kUsualWord, " is a word alone: no name is another then"));
    if (word == kOldMtpWord) out.old_mtp = true;
    if (word == kOldMtpWord || word == kUsualWord) continue;
    auto known = std::ranges::find(kWords, word, &Word::word);
    if (known == std::end(kWords)) {
      std::vector<std::string_view> names;
      for (const Word& row : kWords) names.push_back(row.word);
      names.push_back(kUsualWord);
      if (rank_files) names.push_back(kOldMtpWord);
      throw Error(Code::kUsage, "there is no such spelling of names")
          .expected(one_of(names))
          .found(cat("`spelling` ", escaped(word)));
    }
    for (int row = 0; row < kRows; row++)
      if (kTable[row].why == known->why) out.add(row);
  }
  return out;
}

std::string to_string(const Spelling& spelling) {
  std::string out;
  auto add = [&](std::string_view word) { out += cat(out.empty() ? "" : ", ", word); };
  auto add_rows = [&](SpellingKind why, std::string_view word) {
    for (int row = 0; row < kRows; row++)
      if (kTable[row].why == why && spelling.has(row)) return add(word);
  };
  for (const Word& w : kWords) add_rows(w.why, w.word);
  if (spelling.old_mtp) add(kOldMtpWord);
  add_rows(kFinalNorm, "other name of the final norm");
  return out;
}

bool has_unfused_norms(const Spelling& spelling) {
  for (int row = 0; row < kRows; row++)
    if (spelling.has(row) && kTable[row].why == kUnfusedNorm) return true;
  return false;
}

std::optional<Respelt> other_name(std::string_view name) {
  for (int row = 0; row < kRows; row++) {
    const OtherName& r = kTable[row];
    std::size_t at = name.find(r.usual);
    if (at == name.npos || (at > 0 && name[at - 1] != '.')) continue;
    std::string_view rest = name.substr(at + r.usual.size());
    if (is_leaf(rest)) return Respelt{row, cat(name.substr(0, at), r.other, rest)};
  }
  return std::nullopt;
}

std::optional<std::string> usual_rest(SpellingKind why, LayerKind kind, std::string_view rest) {
  for (const OtherName& r : kTable)
    if (r.why == why && is_of_kind(r, kind) && is_in(rest, r.other))
      return cat(r.usual, rest.substr(r.other.size()));
  return std::nullopt;
}

std::string spelled_rest(std::string_view rest, LayerKind kind, const Spelling& spelling) {
  for (int row = 0; row < kRows; row++) {
    const OtherName& r = kTable[row];
    if (r.symbols.empty() || !is_of_kind(r, kind)) continue;
    for (std::string_view name : {r.usual, r.other})
      if (is_in(rest, name)) return cat(spelling.has(row) ? r.other : r.usual, rest.substr(name.size()));
  }
  return std::string(rest);
}

std::string with_usual_conv(std::string_view name) {
  for (const OtherName& r : kTable) {
    std::size_t at = r.why == kSubmoduleConv ? name.find(r.other) : name.npos;
    if (at != name.npos && is_leaf(name.substr(at + r.other.size())))
      return cat(name.substr(0, at), r.usual, name.substr(at + r.other.size()));
  }
  return std::string(name);
}

std::size_t end_of_layer(std::string_view name) {
  for (std::size_t at = name.rfind(kLayers); at != name.npos && at > 0; at = name.rfind(kLayers, at - 1)) {
    if (name[at - 1] != '.') continue;
    std::size_t end = at + kLayers.size(), digits = end;
    while (digits < name.size() && name[digits] >= '0' && name[digits] <= '9') digits++;
    return digits > end && digits < name.size() && name[digits] == '.' ? digits + 1 : end;
  }
  return 0;
}

void SpellingEvidence::add(std::string_view name) {
  std::size_t end = end_of_layer(name);
  if (end == 0) return;
  std::string_view layer = name.substr(0, end), rest = name.substr(end);
  auto at = seen_.find(layer);
  if (at == seen_.end()) at = seen_.emplace(layer, Seen{}).first;
  for (int row = 0; row < kRows; row++) {
    const OtherName& r = kTable[row];
    if (r.symbols.empty()) continue;
    if (is_in(rest, r.other)) at->second.others.add(row);
    if (rest.starts_with(owner_of(r))) at->second.owners.add(row);
  }
}

Spelling SpellingEvidence::found() const {
  Spelling out;
  for (const auto& [layer, seen] : seen_) out.rows |= seen.others.rows & seen.owners.rows;
  return out;
}

}  // namespace mckpt::impl
