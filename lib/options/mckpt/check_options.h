// How checkpoints are checked, compared and drawn: the options of mckpt/verify.h, mckpt/diff.h and
// mckpt/plot.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "mckpt/options.h"
#include "mckpt/run.h"

namespace mckpt {

// Files that get a card of what was found: files and tensors with their SHA-256, checks, and what was not
// read. The end of each name says the form: .json, .md or .sha256.
struct CardFiles {
  std::vector<std::string> report{};
  std::string command{};  // for the card: what was asked for, in words
};

struct VerifyOptions {
  OpenOptions files{};
  // The folder of the original model, or of its config.json: names and shapes of the tensors are compared
  // with those that the model has. None: with a config.json that the checkpoint itself has, if any.
  std::optional<std::string> assets{};
  // With `assets`: name of the dict that holds the model, when the checkpoint has several
  std::optional<std::string> model_dict{};
  // "MC2015": a config.json that contradicts the args of the run is a warning where it is a problem
  // otherwise, except for sizes. Other codes have a meaning in comparisons alone.
  std::vector<std::string> accept{};
  CardFiles cards{};
  // A card (.json) of the checkpoint as it was: its files are compared with it, byte by byte, and nothing
  // else is checked. Not together with `cards`.
  std::optional<std::string> card{};
  bool strict = false;  // warnings are problems
  int threads = 1;
};

struct CompareOptions {
  SourceOptions opening{};  // of the checkpoint, or of both; its ranks are the source's
  std::optional<std::int64_t> path_tp{},
      path_etp{};                     // ranks that wrote the tested side, if it does not say so
  std::string params_dtype = "none";  // type at run time through which an import passed values
  // The types that the conversion was asked for: a weight that is stored in another type is a difference. any
  // (types are taken as they are found), keep (the source's types), bf16, fp16, fp32; dtype_rule as in
  // plans.h.
  std::string dtype = "any";
  std::vector<std::pair<std::string, std::string>> dtype_rule{};
  bool weights_only = false;                // the conversion left the states of the optimizer out
  std::optional<std::string> model_dict{};  // of the side with several dicts: the one that holds the model
  CardFiles cards{};
  int threads = 1;
};

// A rank of a training run whose dump (rank_dump.py of the Python package) is one side of a diff; the other
// side is the folder of the run's Hugging Face model.
struct LiveRank {
  std::string live{};  // how the rank holds it: megatron, fsdp (Megatron-FSDP); "": neither side is a dump
  std::optional<std::int64_t> rank{};     // none: the rank that the dump says
  Grid grid{};                            // `dp`: by default it follows from the ranks that the dump says
  Fsdp fsdp{};                            // with `live` fsdp
  Values values{.params_dtype = "auto"};  // types at run time, and of main weights
  // As in ToFsdp; none: the names of the dump decide.
  std::vector<std::string> spelling{};
  std::string hybrid_pattern{};
};

struct DiffOptions {
  SourceOptions opening{};                            // of both; its ranks are the ranks of `b`
  std::optional<std::int64_t> path_tp{}, path_etp{};  // ranks that wrote `a`, if it does not say so
  std::optional<std::string> model_dict{};  // of the side with several dicts: the one that holds the model
  // Tolerances: "rtol:1e-3", "atol:1e-6,ulp:4" for all tensors, "*.norm.weight=ulp:4" for some; the first
  // glob decides.
  std::vector<std::string> within{};
  // Only tensors of these names, as `a` has them, are compared, and neither objects nor files: a glob, or
  // with `regex` a regular expression; "": everything.
  std::string names{};
  bool regex = false;
  // A file that ends in .html, which gets a page of the change by layer and module; "": none
  std::string html{};
  LiveRank of_rank{};
  int threads = 1;
};

struct PlotOptions {
  std::string names{};  // a glob of the tensors; "": all
  bool regex = false;   // `names` is a regular expression, found anywhere in a name
  bool stats = false;   // also read all values, for a page
  OpenOptions files{};
  int threads = 1;
};

}  // namespace mckpt
