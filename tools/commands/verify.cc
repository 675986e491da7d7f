// mckpt verify PATH... [--against SRC]: whether a checkpoint is whole and sound by itself, and whether it
// holds what converting another one would write.
//
//   pass  files    2 files         are there, sizes fit
//   pass  format   2 files         headers are well formed
//   pass  coverage 45 tensors      each item in one chunk
//   FAIL  values   7,408 values    NaN and infinities              findings are listed below their check
//   tiny_qwen3_moe: 1 check failed
//
// All checks are the library's (convert/compare/verify.h). Findings never end the run: everything is checked
// and reported. Exit status 0: sound, 1: problems, or not equal.
#include "convert/compare/verify.h"

#include <algorithm>

#include "core/base/error.h"
#include "io/file/parallel.h"
#include "tools/answers/verify_text.h"
#include "tools/commands/commands.h"
#include "tools/options/as_given.h"
#include "tools/options/base_flag.h"
#include "tools/options/checkpoint_flags.h"
#include "tools/options/command_line.h"
#include "tools/options/model_dict_flag.h"
#include "tools/options/run_flags.h"
#include "tools/render/answer_json.h"
#include "tools/render/findings.h"
#include "tools/render/output.h"
#include "tools/run/each_path.h"
#include "tools/run/shown_work.h"

namespace mckpt::impl {
namespace {

// The options of --against; without it, giving one of them is an error.
struct AgainstFlags {
  std::optional<std::string> source;
  CheckpointFlags checkpoint;
  std::optional<i64> path_tp, path_etp;
  ValueFlags values{"none"};
  std::string dtype = "any";
  bool weights_only = false;

  void declare_assets(CommandLine& line);
  void declare(CommandLine& line);
  CompareOptions options() const;
  TypeClaim claim() const;
};

void AgainstFlags::declare_assets(CommandLine& line) {
  checkpoint.declare_assets(
      line,
      "folder of the original model, or of its config.json: the tensors must have the names and "
      "shapes of the model; with --against gives names, packing and data types");
}

void AgainstFlags::declare(CommandLine& line) {
  line.heading("Comparison");
  line.option("--against SRC", source,
              "the source of PATH: PATH must contain, bit for bit, what a conversion of SRC writes; objects "
              "are compared by value, and objects that are not compared are named")
      .common();
  line.only_with("--against");
  checkpoint.declare_rest(line);
  line.option(
      "--path-tp N", path_tp,
      "tensor-parallel ranks that wrote PATH, if SRC is a checkpoint too (--source-tp describes SRC)");
  line.option("--path-etp N", path_etp,
              "expert-tensor-parallel ranks that wrote PATH, if SRC is a checkpoint too");
  values.declare_params(line);
  line.option("--dtype TYPE", dtype,
              "the type that the conversion was asked for: a weight in another type is a difference; any "
              "(the default: "
              "types are taken as they are found), keep (those of SRC), bf16, fp16 or fp32");
  values.declare_rules(line);
  line.flag("--weights-only", weights_only,
            "PATH was made without the states of the optimizer: those of SRC are named as not compared");
}

TypeClaim AgainstFlags::claim() const {
  TypeClaim claim{.rules = values.options().rules};
  if (dtype == "keep") claim.kind = TypeClaim::kKept;
  if (dtype == "keep" || dtype == "any") return claim;
  claim.kind = TypeClaim::kGiven;
  claim.given = parameter_type(dtype, "--dtype", "any, keep");
  return claim;
}

// Throws kUsage for values that are not one of the choices.
CompareOptions AgainstFlags::options() const {
  return {.opening = checkpoint.options(),
          .path_tp = path_tp,
          .path_etp = path_etp,
          .params_dtype = values.options().params_dtype,
          .types = claim(),
          .weights_only = weights_only};
}

// The answer about one path.
struct Answer {
  Verified verified{};
  std::optional<Error> error{};  // then there is no other answer

  bool sound() const { return !error && verified.report.sound(); }
};

void write_json(Output& out, const std::vector<std::string>& paths, const std::vector<Answer>& answers) {
  AnswerJson json(out);
  CheckpointAnswers all(json, "verify", std::ranges::all_of(answers, &Answer::sound), paths.size() > 1);
  for (std::size_t i = 0; i < answers.size(); i++) {
    all.begin(answers[i].sound(), paths[i]);
    if (answers[i].error)
      write_path_error(json, *answers[i].error);
    else
      write_verified_json(json, answers[i].verified);
    all.end();
  }
  all.end_all();
}

// Checkpoints one after the other. Text is printed as soon as a checkpoint is done; JSON begins with the
// verdict on all, so it waits for the last.
Exit verify_all(const CommandLine& line, const std::vector<std::string>& paths,
                const VerifyOptions& options) {
  const GlobalFlags& flags = line.flags();
  Output out(flags);
  std::vector<Answer> answers;
  EachPath each(flags, paths.size() > 1);
  for (const std::string& path : paths) {
    Answer answer;
    answer.error = each.attempt(path, [&] {
      ShownWork work(flags);
      answer.verified = tell_damage(flags, [&] { return verify(path, options, work); });
    });
    for (const Oddities& o : answer.verified.oddities) tell_findings(flags, o.findings, o.root);
    if (!answer.error) each.ended(answer.sound() ? Exit::kOk : Exit::kNo);
    if (!out.json()) {
      if (&path != &paths[0] && !flags.quiet) out.line("");
      if (answer.error)
        out.line(cat(escaped(path, 4096), ": cannot be verified: ", escaped(answer.error->message())));
      else
        write_verified_text(out, path, answer.verified, flags);
      out.flush();
    }
    if (out.json()) answers.push_back(std::move(answer));
  }
  if (out.json()) write_json(out, paths, answers);
  out.flush();
  if (paths.size() > 1)
    note(flags, "each path was verified by itself; `mckpt verify A --against B` compares two");
  return each.exit();
}

}  // namespace

Exit verify_command(CommandLine& line) {
  std::vector<std::string> paths, reports;
  std::optional<std::string> card;
  int threads = default_threads();
  line.positional("PATH", paths, "checkpoints: files or folders").required();
  line.threads(threads, "threads that read; by default one for each processor").common();
  line.option("--report FILE", reports,
              "write a card of PATH: its files and tensors with their SHA-256, the checks, and what was not "
              "read; as JSON (.json), Markdown (.md) or a list for sha256sum (.sha256); may be repeated")
      .common();
  line.option(
          "--card FILE", card,
          "check PATH by a card (.json): files, sizes and SHA-256, and which bytes of which tensor changed; "
          "nothing else is checked")
      .common();
  line.description(
      "Checks that a checkpoint is whole and sound by itself. With --against, compares it with SRC instead, "
      "tensor by tensor and object by object; run both to know both. Reads all data and changes nothing. "
      "Exit "
      "status: 0 sound, or equal; 1 problems were found.");
  line.description(
      "By itself: files and sizes, headers, the index, that chunks cover every tensor exactly once, each "
      "chunk's own header, stored CRC-32 sums, NaN, infinities and implausible values, experts with equal bytes, the tensors of "
      "a "
      "Hugging Face model against its config.json, and other checkpoints and JSON files in the folder. In a "
      "folder that mckpt wrote, every file is also compared with its digest in mckpt_manifest.json. "
      "Everything "
      "else in the folder is named as not read.");
  line.description("With -q, checks that pass are not listed; the last line is the verdict.");
  line.example("mckpt verify ckpt");
  line.example("mckpt verify ckpt model.safetensors --json");
  line.example("mckpt verify checkpoint-500 --assets Qwen3-0.6B");
  line.example("mckpt verify ckpt --against Qwen3-30B-A3B");
  line.example("mckpt verify ckpt --report ckpt.json --report ckpt.md");
  line.example("mckpt verify ckpt --card ckpt.json");
  AgainstFlags against;
  against.declare_assets(line);
  BaseFlag base;
  ModelDictFlag dict;
  base.declare(line);
  dict.declare(line);
  against.declare(line);
  line.parse();
  std::vector<std::string> all = paths;
  if (against.source) all.push_back(*against.source);
  base.settle(line, all);
  if (against.source && paths.size() > 1)
    throw Error(Code::kUsage, "--against compares one PATH").found(counted(std::ssize(paths), "path"));
  if ((card || !reports.empty()) && paths.size() > 1)
    throw Error(Code::kUsage, "a card is of one PATH").found(counted(std::ssize(paths), "path"));
  VerifyOptions options{.threads = threads,
                        .against = against.source,
                        .reports = reports,
                        .card = card,
                        .command = as_given(line)};
  options.compare.opening.assets = against.checkpoint.assets();
  if (against.source) options.compare = against.options();
  options.compare.opening.model.files = line.opening();
  options.compare.model_dict = dict.name();
  return verify_all(line, paths, options);
}

}  // namespace mckpt::impl
