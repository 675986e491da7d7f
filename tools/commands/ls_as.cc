// Parses what rank is meant, lays its share of the model out, and prints it.
//
//   options -> grid, rank -> cell -> ModelMap::parameters() -> at run time: names and local shapes
//                                                           -> as saved: FsdpLayout, keys and boxes
//
// No checkpoint is made: the share is computed from the model's config and headers, and --digest gathers the
// bytes of each tensor from the Hugging Face files.
#include "tools/commands/ls_as.h"

#include "convert/jobs/held_tensors.h"
#include "convert/rank/rank_share.h"
#include "core/base/error.h"
#include "io/choice/tensor_choice.h"
#include "io/file/open_options.h"
#include "tools/answers/tensors/held.h"
#include "tools/options/command_line.h"
#include "tools/render/answer_json.h"
#include "tools/render/notes.h"
#include "tools/render/output.h"
#include "tools/render/progress.h"

namespace mckpt::impl {
namespace {

void write_json(Output& out, bool lines, const HeldList& list, i64 rank) {
  AnswerJson json(out);
  if (!lines) json.begin_answer("ls", true).key("tensors").begin_array();
  for (std::size_t i = 0; i < list.held.size(); i++) {
    write_held(json, list, i, rank);
    if (lines) out.write("\n");
  }
  if (lines) return;
  json.end_array().key("problems").begin_array().end_array();  // they were refused before
  json.end_answer();
}

// Keeps the tensors that GLOB chooses, in the order of the choice.
void choose(const TensorChoice& choice, std::vector<HeldTensor>& held) {
  std::vector<std::string_view> names;
  for (const HeldTensor& h : held) names.push_back(h.name);
  std::vector<HeldTensor> kept;
  for (i64 i : choice.choose(names)) kept.push_back(std::move(held[i]));
  held = std::move(kept);
}

std::vector<std::string> digests_of(const GlobalFlags& flags, const HfModel& model,
                                    std::span<const HeldTensor> held, int threads) {
  if (!model.has_data())
    throw Error(Code::kNotFound, "there are no weights to digest")
        .file(model.path)
        .help("leave out --digest");
  i64 total = 0;
  for (const HeldTensor& h : held) total += h.local_bytes();
  Progress progress(flags, "digest", total);
  std::vector<std::string> digests =
      held_digests(*model.store, held, threads, [&](i64 bytes) { progress.add(bytes); });
  check_unchanged(model.opening);
  return digests;
}

}  // namespace

void LsAs::declare(CommandLine& line) {
  line.heading("As a rank would hold it");
  line.option(
          "--as WHOM", as_,
          "list what one rank would have of a Hugging Face model: megatron (at run time) or fsdp (as saved)")
      .choices({"megatron", "fsdp"})
      .common();
  line.only_with("--as");
  line.option("--rank", rank_, "the rank whose tensors are listed; tp varies fastest, then cp, dp, pp");
  run_.declare(line);
}

Exit LsAs::run(const GlobalFlags& flags, const std::string& path, const TensorChoice& choice, bool digest,
               int threads) {
  const bool fsdp = as_ == "fsdp";
  const ShareForm form = fsdp ? ShareForm::kSaved : ShareForm::kAtRunTime;
  ShareRun run = run_.run();
  run.model.threads = threads;
  const RankShare share(path, std::move(run), rank_, form, digest);
  if (std::string text = run_.grid.note(); !text.empty()) note(flags, text);
  print_notes(flags, share.notes());
  std::vector<HeldTensor> held = share.held(form);
  choose(choice, held);

  std::vector<std::string> digests;
  if (digest) digests = digests_of(flags, share.model(), held, threads);
  std::vector<ParameterMarks> marks;  // Megatron-FSDP saves none
  for (const HeldTensor& h : held)
    if (!fsdp) marks.push_back(share.marks(h));
  const HeldList list{held, digests, marks, fsdp};
  Output out(flags);
  if (out.json())
    write_json(out, flags.jsonl, list, rank_);
  else if (flags.quiet)
    for (const HeldTensor& h : held) out.line(escaped(h.name));
  else
    write_held(out, list);
  out.flush();
  return Exit::kOk;
}

}  // namespace mckpt::impl
