// Opens the model, which pairs and accounts, and prints the counts; with -v the pairs.
#include "tools/answers/mappings/check.h"

#include "core/base/notes.h"
#include "core/base/text.h"
#include "hf/folder/tied_names.h"
#include "hf/model.h"
#include "hf/model_options.h"
#include "io/file/parallel.h"
#include "io/store/finding.h"
#include "mappings/family.h"
#include "mappings/model/expand.h"
#include "tools/answers/mappings/text.h"
#include "tools/render/answer_json.h"
#include "tools/render/notes.h"
#include "tools/render/output.h"

namespace mckpt::impl {

// Opens the model, which pairs and accounts, and compares copies that are not read with the tensors that they
// should repeat; a copy that differs is a warning.
void check_model(Output& out, const GlobalFlags& flags, const std::string& path, HfModelOptions how) {
  how.leave_unlike_copies = true;
  HfModel m = open_hf_model(path, how);
  print_notes(flags, notes_of(m));
  const std::vector<std::string> unlike = unlike_copies(m, default_threads());
  for (const std::string& pair : unlike) warn(flags, unlike_tie_finding(pair).message);
  const ModelMap& map = *m.map;
  if (out.json()) {
    AnswerJson json(out);
    json.begin_answer("mappings", true).field("family", map.family().name);
    json.field("architecture", m.config.architecture).field("parameters", map.parameter_count());
    json.field("tensors", static_cast<i64>(map.sources().size()))
        .field("data", m.has_data())
        .field("unlike_copies", std::ssize(unlike))
        .key("unread")
        .begin_array();
    for (const UnreadTensor& u : map.unread())
      write_unread(json, map.sources()[u.tensor].name, u.of < 0 ? "" : map.sources()[u.of].name, u.reason);
    json.end_array();
    if (flags.verbose) write_pairs(json.key("pairs"), map);
    json.end_answer();
    return;
  }
  if (flags.verbose) {
    write_pairs(out, map);
    out.write("\n");
  }
  out.line(cat(map.family().name, ": ", counted(map.parameter_count(), "Megatron parameter"), " from ",
               counted(std::ssize(map.sources()), "tensor"),
               m.has_data() ? "" : " (by the config; the folder has no data)",
               map.unread().empty() ? "" : cat(", ", map.unread().size(), " of them copies or not needed")));
}

}  // namespace mckpt::impl
