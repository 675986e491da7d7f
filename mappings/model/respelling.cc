// A renamed parameter is moved within its layer, whose parameters follow each other in the list.
#include "mappings/model/respelling.h"

#include <algorithm>
#include <array>

#include "core/base/error.h"
#include "core/fsdp/grid.h"
#include "core/hybrid/mtp_names.h"
#include "core/hybrid/spellings.h"
#include "mappings/config.h"
#include "mappings/model/expand.h"
#include "mappings/model/parameter.h"
#include "mappings/model/run_setup.h"

namespace mckpt::impl {
namespace {

using Parameters = std::vector<ModelParameter>;

// The place of parameter `at` among the parameters of its layer: before the first one that begins like the
// neighbour, or behind the last one that begins so or is of the same module. Its own place if there is none.
i64 place_of(const Parameters& all, i64 at, const OtherName& row) {
  std::string_view name = all[at].global_name;
  std::string_view layer = name.substr(0, end_of_layer(name));
  std::string neighbour = cat(layer, row.neighbour), same = cat(layer, row.other);
  i64 first = at, end = at + 1;
  while (first > 0 && all[first - 1].global_name.starts_with(layer)) first--;
  while (end < std::ssize(all) && all[end].global_name.starts_with(layer)) end++;
  i64 place = at;
  for (i64 i = first; i < end; i++) {
    if (i == at) continue;
    const std::string& other = all[i].global_name;
    bool near = other.starts_with(neighbour);
    if (!row.behind && near) return i < at ? i : i - 1;
    if (row.behind && (near || other.starts_with(same))) place = i < at ? i + 1 : i;
  }
  return place;
}

void move_to(Parameters& all, i64 from, i64 to) {
  auto begin = all.begin();
  if (to < from) std::rotate(begin + to, begin + from, begin + from + 1);
  if (to > from) std::rotate(begin + from, begin + from + 1, begin + to + 1);
}

// The first key under which a checkpoint may store the parameter, if it is stored in parts; and its own name.
std::array<std::string, 3> keys_of(const ModelParameter& p, const std::string& name,
                                   const ModelConfig& model) {
  std::array<std::string, 3> keys{name, name, name};
  int i = 1;
  for (KeySplit split : {p.split, rule_named(p.row->rule).parts})
    if (split != KeySplit::kNone)
      keys[i++] = piece_key(split, name, pieces_of(split, model, {p.shape()}, Part{})[0]);
  return keys;
}

// All rows with the reason of one row, as bits.
u32 rows_like(int row) {
  u32 rows = 0;
  for (std::size_t r = 0; r < other_names().size(); r++)
    if (other_names()[r].why == other_names()[row].why) rows |= u32{1} << r;
  return rows;
}

[[noreturn]] void refuse_mixed(const std::string& usual, const std::string& other) {
  throw Error(Code::kUnaccounted,
              "the layers of the checkpoint spell the names of their parameters differently")
      .tensor(usual)
      .note(cat(escaped(usual), " has the usual name"))
      .note(cat(escaped(other), " has the other one"))
      .expected("one spelling in all layers");
}

}  // namespace

void refuse_two_names(const std::string& usual, const std::string& other) {
  throw Error(Code::kUnaccounted, "the checkpoint has one parameter under two names")
      .tensor(usual)
      .expected(cat(escaped(usual), " or ", escaped(other)))
      .found("both");
}

// A parameter that was moved behind its place leaves the next one there.
void respell(const Spelling& spelling, Parameters& parameters) {
  if (spelling.usual()) return;
  for (i64 i = 0; i < std::ssize(parameters);) {
    ModelParameter& p = parameters[i];
    std::optional<Respelt> other = other_name(p.global_name);
    const OtherName* row = other && spelling.has(other->row) ? &other_names()[other->row] : nullptr;
    if (!row) {
      i++;
      continue;
    }
    p.global_name = std::move(other->name);
    p.name = other_name(p.name)->name;
    i64 place = row->neighbour.empty() ? i : place_of(parameters, i, *row);
    move_to(parameters, i, place);
    if (place <= i) i++;
  }
}

void refuse_without_effect(const Spelling& spelling, const ModelMap& map, RunSetup setup, bool rank_files) {
  if (spelling.usual()) return;
  if (spelling.old_mtp && !rank_files)
    throw Error(Code::kUsage, "only files of ranks are written with the old names of MTP's layers")
        .found(cat("`spelling` ", kOldMtpWord))
        .help("leave the word out");
  setup.spelling = {};
  Spelling missing = spelling;
  for (const ModelParameter& p : map.parameters(Grid{}, Cell{}, setup)) {
    if (std::optional<Respelt> other = other_name(p.global_name)) missing.rows &= ~rows_like(other->row);
    if (missing.old_mtp && old_mtp_name(p.global_name)) missing.old_mtp = false;
  }
  if (missing.usual()) return;
  throw Error(Code::kUsage, "the model has no parameters that this spelling names otherwise")
      .found(cat("`spelling` ", to_string(missing)))
      .help("leave the word out");
}

Spelling stored_spelling(const ModelMap& map, RunSetup setup,
                         const std::function<bool(const std::string&)>& has) {
  setup.spelling = {};
  Spelling found;
  std::vector<std::string> usual_of(other_names().size()), other_of(other_names().size());
  for (const ModelParameter& p : map.parameters(Grid{}, Cell{}, setup)) {
    std::optional<Respelt> other = other_name(p.global_name);
    if (!other) continue;
    bool as_usual = std::ranges::any_of(keys_of(p, p.global_name, map.model()), has);
    bool as_other = std::ranges::any_of(keys_of(p, other->name, map.model()), has);
    if (as_usual && as_other) refuse_two_names(p.global_name, other->name);
    if (as_usual) usual_of[other->row] = p.global_name;
    if (as_other) other_of[other->row] = other->name, found.add(other->row);
    if (!usual_of[other->row].empty() && !other_of[other->row].empty())
      refuse_mixed(usual_of[other->row], other_of[other->row]);
  }
  return found;
}

}  // namespace mckpt::impl
