// mckpt inspect PATH...: what is stored at a path, from headers alone.
//
//   tiny_qwen3_moe
//   safetensors folder | 2 files | architecture Qwen3MoeForCausalLM | model_type qwen3_moe | ...
//   model  45 tensors  7,408 params  14.5 KiB
//   bfloat16 100 %
//                                                               then one of:
//   lm_head.weight     [32, 16]    bfloat16    1.00 KiB         a tree of tensors (--tree: unfolded)
//   args.num_layers  2                                          the objects (--args)
//   group 0  5 parameters  weight_decay 0.1                     the optimizer's parameter groups (--groups)
//   q_proj  [32, 16]  ## ##  full, 2 x 16 rows                  who holds what (--map)
//
// Several paths are several cards; in JSON one path is an object, several are a list in one object. Exit
// status 1: a problem was found in one of them.
#include <filesystem>

#include "convert/dialects/fsdp/packed_by.h"
#include "convert/open/other_model.h"
#include "convert/open/shard_facts.h"
#include "core/base/error.h"
#include "hf/draft_of_model.h"
#include "hf/quantized/dequantized_store.h"
#include "io/choice/tensor_choice.h"
#include "io/file/open_options.h"
#include "io/store/soundness.h"
#include "io/store/store.h"
#include "io/store/summary.h"
#include "tools/answers/inspect/holders.h"
#include "tools/answers/inspect/json.h"
#include "tools/answers/inspect/objects.h"
#include "tools/answers/inspect/optimizer_groups.h"
#include "tools/answers/inspect/text.h"
#include "tools/commands/commands.h"
#include "tools/options/base_flag.h"
#include "tools/options/command_line.h"
#include "tools/render/answer_json.h"
#include "tools/render/findings.h"
#include "tools/render/output.h"
#include "tools/render/setting_names.h"
#include "tools/run/each_path.h"

namespace mckpt::impl {
namespace {

// The request of the command line. `map`: a glob, "" for all tensors.
struct Options {
  std::vector<std::string> paths;
  bool tree = false, args = false, groups = false;
  std::optional<std::string> map;
};

// A checkpoint with the parameters of its quantised tensors.
struct Described {
  std::unique_ptr<Store> store;
  PackedParameters packed;
};

// Opens the checkpoint, with facts that say which of its modules are quantised and how, and that no family
// has its type. Quantised tensors are recognised once, for facts and parameters: all names are looked at, and
// the config is read.
Described open_described(const std::string& path, const CommandLine& line) {
  OpenOptions opening = line.opening();
  opening.two_models = TwoModels::kFindingUnread;
  Described out{open_store(path, opening), {}};
  out.packed = add_quantized_facts(*out.store);
  add_family_fact(*out.store);
  add_config_fact(*out.store);
  return out;
}

// For a type that no family has, the command that goes on.
void note_way_on(const CommandLine& line, const Store& store, const std::string& path) {
  for (const auto& [name, value] : store.facts())
    if (name == kFamilyFact && value.starts_with(kUnknownFamily))
      note(line.flags(), with_flags(draft_command(path)));
}

// All checkpoints are opened before anything is printed.
Exit write_json(Output& out, const CommandLine& line, const Options& options) {
  EachPath each(line.flags(), options.paths.size() > 1);
  std::vector<Described> opened(options.paths.size());
  std::vector<std::optional<Error>> errors;
  for (std::size_t i = 0; i < opened.size(); i++)
    errors.push_back(
        each.attempt(options.paths[i], [&] { opened[i] = open_described(options.paths[i], line); }));
  AnswerJson json(out);
  const auto sound = [](const Described& d) { return d.store && is_sound(*d.store); };
  const bool all_sound = std::ranges::all_of(opened, sound);
  CheckpointAnswers answers(json, "inspect", all_sound, opened.size() > 1 && !line.flags().jsonl);
  for (std::size_t i = 0; i < opened.size(); i++) {
    answers.begin(sound(opened[i]), options.paths[i]);
    if (errors[i])
      write_path_error(json, *errors[i]);
    else
      write_checkpoint_json(json, *opened[i].store, opened[i].packed, options.paths[i], options.args,
                            options.groups);
    answers.end();
  }
  answers.end_all();
  if (!all_sound) each.ended(Exit::kNo);
  return each.exit();
}

// The card of one checkpoint, and below it the map, the objects or the tree.
void write_text(Output& out, const Described& described, const std::string& path, const Options& options,
                bool verbose) {
  const Store& store = *described.store;
  const std::optional<ShardFacts> shard = shard_facts(store);
  const std::optional<PackedBy> packing = packed_by(store);
  write_card(out, store, described.packed, path, {shard ? &*shard : nullptr, packing ? &*packing : nullptr});
  if (options.map) {
    TensorChoice choice{*options.map, false};
    write_holders(out, store, choice.choose(store), shard ? &*shard : nullptr);
  } else if (options.groups) {
    write_optimizer_groups(out, store);
  } else if (options.args) {
    out.line("");
    write_object_values(out, store, options.tree);
  } else {
    write_tree(out, store, options.tree, !verbose, shard ? &*shard : nullptr);
    if (verbose && !store.objects().empty()) {
      out.line("");
      write_object_values(out, store, options.tree);
    }
  }
}

// Refuses options that write_text() would pass over.
void refuse_unshown(const CommandLine& line) {
  auto refuse = [&line](const char* shown, const char* other) {
    if (line.given(shown) && line.given(other))
      throw Error(Code::kUsage, cat(other, " has no effect beside ", shown)).expected("one of the two");
  };
  for (const char* other : {"--tree", "--args", "--groups"}) refuse("--map", other);
  refuse("--groups", "--tree");
  if (!line.flags().json) refuse("--groups", "--args");
}

// A glob of tensors is the value of --map, with an equals sign, or belongs to another command.
void refuse_glob_as_path(const Options& options) {
  std::error_code failed;
  for (const std::string& path : options.paths) {
    if (path.find_first_of("*?[") == path.npos || std::filesystem::exists(path, failed)) continue;
    if (options.map && options.map->empty())
      throw Error(Code::kUsage, "--map takes its GLOB after an equals sign")
          .found(escaped(path))
          .help(cat("--map='", escaped(path), "'"));
    Error e(Code::kNotFound, "there is no such file or folder");
    e.file(path);
    const std::string folder = std::filesystem::path(path).parent_path().string();
    if (!folder.empty() && std::filesystem::is_directory(folder, failed))
      throw e.help(cat("name the folder, of which all files are read: ", escaped(folder, 4096)));
    throw e.help(cat("tensors are chosen by `mckpt ls PATH '", escaped(path), "'`, or here by --map='",
                     escaped(path), "'"));
  }
}

}  // namespace

Exit inspect_command(CommandLine& line) {
  Options options;
  line.positional("PATH", options.paths, "checkpoints: files or folders of any format").required();
  line.flag("--tree", options.tree, "print every tensor on a line of its own, also where tensors are alike")
      .common();
  line.flag("--args", options.args, "print objects that are not tensors: arguments, iteration, schedules")
      .common();
  line.flag(
          "--groups", options.groups,
          "print the parameter groups of the optimizer: which parameters have which settings, and which have none")
      .common();
  line.optional_value("--map GLOB", options.map,
                      "show which ranks hold which part of each tensor (that matches GLOB)")
      .common();
  BaseFlag base;
  base.declare(line);
  line.description(
      "Reports format, tensors, data types, layout and other objects, from headers alone. Nothing is changed and no code of the checkpoint is run. Exit status 1: a problem was found.");
  line.example("mckpt inspect Qwen3-0.6B");
  line.example("mckpt inspect ckpt --args");
  line.example("mckpt inspect ckpt --groups");
  line.example("mckpt inspect ckpt --map='*layers.0.*'");
  line.parse();
  refuse_unshown(line);
  refuse_glob_as_path(options);
  base.settle(line, options.paths);

  Output out(line.flags());
  if (out.json()) {
    Exit exit = write_json(out, line, options);
    check_unchanged(line.opening());
    out.flush();
    return exit;
  }
  EachPath each(line.flags(), options.paths.size() > 1);
  for (const std::string& path : options.paths)
    each.attempt(path, [&] {
      const Described described = open_described(path, line);
      if (Output::has_written()) out.line("");
      write_text(out, described, path, options, line.flags().verbose > 0);
      note_way_on(line, *described.store, path);
      check_unchanged(line.opening());
      out.flush();
      each.ended(report_findings(line.flags(), *described.store));
    });
  return each.exit();
}

}  // namespace mckpt::impl
