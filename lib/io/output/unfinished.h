// The remains of a result that an interrupted run left, and what the next run may do with them. The same plan
// goes on by itself, so that no work is lost; what another plan began is thrown away only where the user says
// so.
//
//   left by               now without `overwrite`        now with `overwrite`
//   the same plan         goes on                        goes on
//   another plan          refused: kOtherPlan            removed, begun anew
//   a live model          removed, begun anew            removed, begun anew
//   an error of the
//   source                removed, begun anew            removed, begun anew
//
// A live model has no identity that a later run could compare. After an error of the source, such as a
// checksum that does not match, nothing of the result can be used: the plan is marked as one with which
// nobody goes on.
//
// A folder that only has the hidden name, and no mark of mckpt, is somebody's own: nothing in it is touched.
#pragma once

#include <string>
#include <string_view>

namespace mckpt::impl {

class Error;

// The plan of a result that no run goes on with.
inline constexpr const char* kNotResumed = "not resumed\n";

// Whether the folder has the mark of this plan, and a later run can go on with it.
bool is_of_plan(const std::string& folder, const std::string& plan);
// Whether the folder has the mark of another plan, with which a later run could go on.
bool is_of_other_plan(const std::string& folder, const std::string& plan);

// Marks the folder, whose plan nobody goes on with from now on. Returns 0 or an errno.
int mark_given_up(const std::string& folder);

// The names of one result.
struct StagedNames {
  const std::string &path, &staging, &old;
};
// Throws kOutputExists if a hidden name is one of something that mckpt did not make: of a file or a link, or
// of a folder with files and without marks that is not the one which a result replaced.
void refuse_foreign_staging(const StagedNames& names);

// How the two choices are worded. `resumes`: the command was told to resume. `anew`: how the caller begins
// anew, such as "give `overwrite`".
struct Choices {
  bool resumes;
  std::string_view anew;
};
// Throws kOtherPlan, with what differs and both choices.
[[noreturn]] void refuse_other_plan(const std::string& staging, const std::string& plan, Choices choices);

// Whether the same plan can go on after an error: a signal, a full disk, memory, a lost rank, a name that is
// taken. False after an error of what the result is made from.
bool can_go_on_after(const Error& error);

// The log of finished tasks may say more than the disk holds when data were written without fsync and the
// machine has gone down since. note_boot() keeps which start of the system it is, once; drop_lost_log()
// removes the log if that was another one. Both return 0 or an errno. is_of_another_start(): it was.
int note_boot(const std::string& folder);
int drop_lost_log(const std::string& folder);
bool is_of_another_start(const std::string& folder);

}  // namespace mckpt::impl
