// Megatron makes a CheckpointingConfig of the members, so a member with another name is an error there too,
// and it looks its readers up by backend and version. Megatron-Core 0.16 has one for sharded tensors and one
// for the common state.
#include "io/dcp/check/mark.h"

#include <algorithm>
#include <string>

#include "core/base/error.h"
#include "io/file/folder.h"
#include "io/json/json.h"
#include "io/json/json_file.h"
#include "io/store/finding.h"

namespace mckpt::impl {
namespace {

constexpr i64 kMostBytes = i64{1} << 20;
constexpr const char* kExpected = R"(sharded_backend "torch_dist", version 1)";

struct Member {
  std::string_view name, text;  // text: the only value that is taken; "": the number 1
};
constexpr Member kMembers[] = {{"sharded_backend", "torch_dist"},
                               {"sharded_backend_version", ""},
                               {"common_backend", "torch"},
                               {"common_backend_version", ""}};

bool is_taken(const Member& m, const JsonValue& value) {
  if (!m.text.empty()) return value.is(JsonType::kString) && value.string(m.name) == m.text;
  return value.is_integer() && value.number(m.name) == "1";
}

// The fault of the mark; "": none.
std::string fault_of(const JsonValue& mark) {
  if (!mark.is(JsonType::kObject)) return mark.summary();
  if (mark.find(kMembers[0].name) == nullptr) return cat("no ", kMembers[0].name);
  for (const JsonMember& found : mark.object("the mark")) {
    auto known = std::ranges::find(kMembers, found.name, &Member::name);
    if (known == std::end(kMembers)) return cat("the member ", escaped(found.name));
    if (!is_taken(*known, found.value)) {
      const bool text = found.value.is(JsonType::kString);
      return cat(found.name, " ", text ? escaped(found.value.string(found.name), 80) : found.value.summary());
    }
  }
  return "";
}

}  // namespace

std::vector<Finding> check_mark(const Folder& folder) {
  std::string fault;
  try {
    fault =
        fault_of(parse_json(json_text(folder.open_file(kMarkOfTorchDist), kMostBytes), JsonNumbers::kPython));
  } catch (const Error& e) {
    if (e.code() == Code::kInterrupted) throw;
    fault = to_finding(e).message;
  }
  if (fault.empty()) return {};
  return {
      {.code = Code::kIncomplete,
       .file = std::string(kMarkOfTorchDist),
       .message = cat(
           "Megatron does not take this mark of a torch_dist checkpoint, and does not load the folder: expected ",
           kExpected, "; found ", fault),
       .warning = true}};
}

}  // namespace mckpt::impl
