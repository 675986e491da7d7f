// Whether a checkpoint may be used, judged by what its readers found wrong or odd about it:
//
//   finding   problem[MC1107]: model.safetensors: tensor 'x': ...    something is lost: damage
//             warning[MC1009]: tensor 'experts.w': ...               odd, but nothing is lost
//
// Damage is not converted: the result would look sound. `inspect` and `verify` report all findings instead.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "io/store/finding.h"

namespace mckpt::impl {

class Store;

// The error about a checkpoint that is refused because it is damaged. As an Error, it is the first problem.
class DamagedCheckpoint : public Error {
 public:
  DamagedCheckpoint(Error first_problem, std::vector<Finding> others, std::string root)
      : Error(std::move(first_problem)), others_(std::move(others)), root_(std::move(root)) {}

  // All other findings, problems and oddities.
  const std::vector<Finding>& others() const { return others_; }
  const std::string& root() const { return root_; }  // of the checkpoint

 private:
  std::vector<Finding> others_;
  std::string root_;
};

// Oddities of a checkpoint that is used all the same, for a report.
struct Oddities {
  std::string root;  // of the checkpoint
  std::vector<Finding> findings;
};

// True if no finding is a problem.
bool is_sound(const Store& store);

// True for a problem of a single tensor or record (missing, incomplete, a hole): the rest of the checkpoint
// can be read.
bool is_of_records(const Finding& finding);

// Throws DamagedCheckpoint if one of the findings is a problem. `root`: the checkpoint, for the message.
void require_sound(std::span<const Finding> findings, const std::string& root);

// "problem[MC1107]"
std::string finding_kind(const Finding& finding);
// "model.safetensors: tensor 'x': the data ends early (byte 1,024)"
std::string finding_text(const Finding& finding);
// Kind and text, with ": " between them.
std::string finding_line(const Finding& finding);

}  // namespace mckpt::impl
