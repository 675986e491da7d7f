// A draft is tried as if its questions were answered as its rows are, so that one look shows all that is
// left. Rows that name no parameter are left out: their tensors are unmatched then.
#include "hf/check_map.h"

#include <algorithm>

#include "core/base/error.h"
#include "hf/config/map_file.h"
#include "hf/model.h"
#include "hf/model_options.h"
#include "mappings/map_file/map.h"

namespace mckpt::impl {
namespace {

// The map without questions; rows that cannot be applied are left out.
std::string answered(MapFile map) {
  std::erase_if(map.rows, [](const MapRow& row) {
    return !row.todo.empty() && (row.megatron.empty() || row.rule.empty());
  });
  for (MapRow& row : map.rows) row.todo.clear();
  return map_file_text(map);
}

}  // namespace

HfModel open_with_draft(const std::string& path, const HfModelOptions& options) {
  if (options.map_file.empty()) return open_hf_model(path, options);
  MapFile map = parse_map_file(read_map_text(options.map_file, options.files));
  std::vector<std::string> questions = open_questions(map);
  if (questions.empty()) return open_hf_model(path, options);
  const i64 rows = std::ssize(questions);
  std::string unmatched;
  try {
    HfModelOptions rest = options;
    rest.map_file = "";
    rest.kept_map = answered(std::move(map));
    open_hf_model(path, rest);
  } catch (const Error& e) {
    unmatched = cat("; ", e.message());
    for (const std::string& note : e.notes()) questions.push_back(note);
  }
  throw Error(Code::kBadMap, cat("the map is not finished: ", counted(rows, "row"), " to decide", unmatched))
      .file(options.map_file)
      .each_note(questions, 100)
      .help("correct each of these rows, and take its \"todo\" out");
}

}  // namespace mckpt::impl
