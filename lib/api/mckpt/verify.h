// mckpt::verify() and compare(): whether a checkpoint is complete and sound, and whether it contains what
// converting another one would write.
//
//   mckpt::Report r = mckpt::compare("ckpt", "Qwen3-0.6B");
//   if (!r.equal) for (const mckpt::Difference& d : r.differences) ...
//
// What is wrong is a value in the report. An Error is thrown only if there is nothing to check, or if the
// system fails.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "mckpt/checkpoint.h"
#include "mckpt/observer.h"

namespace mckpt {

// One kind of check, and how it ended.
struct Check {
  std::string name{};    // "coverage"
  std::string status{};  // none (nothing to check), pass, warn, fail
  std::int64_t count = 0;
  std::string unit{};       // of what `count` counts: "tensors"
  std::int64_t unseen = 0;  // how many could not be looked at
  std::string note{};       // what was left out on purpose, and why
};

// How two sides differ in one tensor or object.
struct Difference {
  std::string tensor{}, file{};
  std::string at{};  // the first place: "[3, 2]" in a tensor, ".lr" in an object
  std::string expected{}, found{};
  std::int64_t items = -1;          // how many items differ; -1 for an object
  std::optional<double> largest{};  // the largest difference between two numbers
};

struct Report {
  // No finding is a problem. Only what was read counts: see `unread`. A comparison does not judge values,
  // such as NaN on both sides; with a card it is false.
  bool sound = false;
  std::optional<bool> equal{};  // of a comparison: everything was compared and is equal
  // Of a comparison: how many have another type, shape or value
  std::optional<std::int64_t> differing_tensors{};
  // Of a comparison: tensors that were compared after a cast to a type that does not hold all values of the
  // source's. Where there are any, `equal` is about the rounded values.
  std::optional<std::int64_t> rounded{};
  // With VerifyOptions::card: all files are those of the card. Nothing else was checked
  std::optional<bool> as_card{};
  std::vector<Check> checks{};
  std::vector<Finding> findings{};
  std::vector<Difference> differences{};
  std::vector<std::string> unread{};  // files and folders that no check looked at
  std::vector<Finding> oddities{};    // about the two sides of a comparison: odd, but nothing is lost
};

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
  std::string model_dict{};  // with `assets`, of several dicts that may be the model: the one that is
  CardFiles cards{};
  // A card (.json) of the checkpoint as it was: its files are compared with it, byte by byte, and nothing
  // else is checked. Not together with `cards`.
  std::optional<std::string> card{};
  int threads = 1;
};

struct CompareOptions {
  SourceOptions opening{};  // of the checkpoint, or of both; its ranks are those of the source
  std::optional<std::int64_t> path_tp{},
      path_etp{};                     // ranks that wrote the tested side, if it does not say so
  std::string params_dtype = "none";  // type at run time through which an import passed values
  // The types that the conversion was asked for: a weight that is stored in another type is a difference. any
  // (types are taken as they are found), keep (those of the source), bf16, fp16, fp32; dtype_rule as in
  // plans.h.
  std::string dtype = "any";
  std::vector<std::pair<std::string, std::string>> dtype_rule{};
  bool weights_only = false;  // the conversion left the states of the optimizer out
  std::string model_dict{};   // of the side with several dicts that may be the model: the one that is
  CardFiles cards{};
  int threads = 1;
};

// The checkpoint by itself: files, sizes, headers, coverage, stored sums, NaN, equal experts. Reads all data.
MCKPT_API Report verify(const std::string& path, const VerifyOptions& options = {},
                        Observer* observer = nullptr);
// Whether `tested` contains, bit for bit, what converting `source` would write. The checks of verify() are
// not made: a NaN that both sides have is equal.
MCKPT_API Report compare(const std::string& tested, const std::string& source,
                         const CompareOptions& options = {}, Observer* observer = nullptr);

}  // namespace mckpt
