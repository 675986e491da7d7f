// Prints the draft, and on stderr what it is.
#include "tools/answers/mappings/draft.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "core/base/error.h"
#include "hf/draft_of_model.h"
#include "io/file/file.h"
#include "io/file/open_options.h"
#include "tools/render/answer_json.h"
#include "tools/render/output.h"

namespace mckpt::impl {
namespace {

// A file that exists may have a person's decisions in it.
void write_new(const std::string& path, std::string_view text) {
  int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0 && errno == EEXIST)
    throw Error(Code::kOutputExists, "the file exists already")
        .file(path)
        .help("name another file, or remove this one");
  if (fd < 0)
    throw Error(Code::kWriteFailed, cat("the map file cannot be made: ", errno_text(errno))).file(path);
  while (!text.empty()) {
    ssize_t n = ::write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      int why = errno;
      ::close(fd);
      ::unlink(path.c_str());
      throw Error(Code::kWriteFailed, cat("the map file cannot be written: ", errno_text(why))).file(path);
    }
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  ::close(fd);
}

std::string summary(const ModelDraft& d) {
  return cat("base ", d.base, ", which explains ", with_commas(d.explained), " of ",
             counted(d.tensors, "tensor"), "; ",
             d.to_decide == 0 ? "all rows fit" : cat(counted(d.to_decide, "row"), " to decide"));
}

// A map is about tensors alone, and models with equal tensors can compute different things.
std::string computation_text(const ModelDraft& d) {
  std::string text =
      "not compared: how the model computes with these tensors (activation, norms, positions, scales, caps)";
  if (d.computation.empty()) return text;
  text += "; here:";
  for (const std::string& entry : d.computation) text += cat("\n  ", entry);
  return text;
}

}  // namespace

void draft_map_of(Output& out, const GlobalFlags& flags, const std::string& path, const std::string& file,
                  const OpenOptions& opening) {
  const std::string to = file == "-" ? "" : file;
  ModelDraft draft = draft_of_model(path, opening);
  if (!to.empty()) write_new(to, draft.text);
  if (out.json()) {
    AnswerJson json(out);
    json.begin_answer("mappings", true).field("base", draft.base);
    json.field("tensors", draft.tensors).field("explained", draft.explained);
    json.field("to_decide", draft.to_decide);
    json.key("computation").begin_array();
    for (const std::string& entry : draft.computation) json.value(entry);
    json.end_array();
    json.field("file", to).field("map", draft.text);
    json.end_answer();
    return;
  }
  if (to.empty()) {
    out.keep_lines();
    out.write(draft.text);
  } else {
    out.line(to);
  }
  note(flags, summary(draft));
  if (!draft.not_read.empty())
    note(flags, cat("the reader of ", draft.base, " does not take the config as it is: ", draft.not_read,
                    "; set the entry under \"config\""));
  note(flags, computation_text(draft));
  if (!to.empty()) note(flags, cat("next: mckpt mappings check ", path, " ", to));
}

}  // namespace mckpt::impl
