// StagedFolder: a folder that appears under its name only when it is complete. It is made in a hidden folder
// beside its place. Marks in the hidden folder (io/output/staging_marks.h) identify the plan it is made by,
// and a later run with the same plan goes on with it. An existing folder of the name stays until the rename.
//
//   DIR/.NAME.mckpt-tmp/  --write, fsync, mark, rename->  DIR/NAME/ and marks  --fsync, last step->  DIR/NAME/
//
// Whatever moment the program is killed at, one of these states is on disk, and the same plan goes on from
// each (io/output/unfinished.h says what others may do):
//
//   before the rename      NAME is as it was; .NAME.mckpt-tmp has the marks
//   after the rename       NAME is the result and has the marks, and .plan says that it is complete
//                          (io/output/published.h); .NAME.mckpt-tmp may be the replaced folder
//   between two renames    NAME does not exist; .NAME.mckpt-old is the replaced folder, which the next run
//                          puts back; .NAME.mckpt-tmp has the marks. Only where two names cannot be swapped
//
// The hidden folder is locked (flock) while a program makes it; a second program is refused (kOutputBusy). A
// folder that others made, or may write into, is refused (io/output/staged_content.h).
// A folder that is mounted in one that is to be removed is never entered (io/file/remove_tree.h).
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "core/base/int.h"
#include "io/output/host_lock.h"
#include "io/output/result_files.h"

namespace mckpt::impl {

// One folder that is being made; owns the lock. For one thread of one process: under several ranks, rank 0
// has the object, and the others write into folder().
class StagedFolder {
 public:
  struct Options {
    bool durable = true;   // false: no fsync; for scratch
    bool replace = false;  // an existing result may be replaced
    // The interrupted run is to be continued, also if it was to replace a folder; not together with
    // `replace`. Without it the same plan goes on too, but replaces nothing that it is not told to.
    bool resume = false;
    // The proposal of kOutputExists' help besides "choose another name", and how to begin anew.
    const char* instead = "replace it with `overwrite`";
    const char* anew = "give `overwrite`";
    FileNames copied{};     // files of the result that are copies and may have any name
    bool resumable = true;  // false: nothing of a folder that is not published stays
  };

  // Refuses what can be refused before anything is written. Throws kOutputExists, also if files would be
  // removed that are not part of a result, and for a mount point, on the folder or in it; kOtherPlan; kNoRoom
  // if there is no room for so many bytes or files.
  static void check(const std::string& path, const Options& options, const std::string& plan, i64 bytes,
                    i64 files);

  // Makes, or takes over, and locks the hidden folder. `plan` is a text that identifies what is made: from
  // what, how, by which version. Throws kOutputExists, kOutputBusy if another program makes the same folder,
  // kOtherPlan if a run with another plan was interrupted and is not to be replaced, kWriteFailed.
  // kOutputExists for a folder of a lower layer of overlayfs, too: it has no room for another one under its
  // name.
  StagedFolder(std::string path, Options options, std::string plan);
  // Unlocks. A result that was not published stays for the next run of the plan, unless the options say
  // otherwise.
  ~StagedFolder();
  StagedFolder(const StagedFolder&) = delete;
  StagedFolder& operator=(const StagedFolder&) = delete;

  const std::string& folder() const { return staging_; }  // where to write
  static std::string staging_path(const std::string& path);
  static std::string log_path(const std::string& folder);  // where to keep the log of what is done
  // The folder has the files of an interrupted run of the same plan.
  bool resumes() const { return resumes_; }
  // The unfinished output of a run that nobody goes on with was removed.
  bool began_anew() const { return began_anew_; }
  // The interrupted run had published the result: nothing is left to write, publish() does the remaining
  // steps.
  bool published() const { return published_; }
  // Nothing can be gone on with: the next run, of any plan, begins anew. Returns 0, or an errno if that could
  // not be noted.
  int give_up();
  // Whether a run for `path` was interrupted, before or after the rename: the same plan can go on with it.
  static bool is_begun(const std::string& path);

  // Gives the result its name, then calls `last_step` (such as writing a tracker), removes the replaced
  // folder and the marks. Throws kWriteFailed and kOutputExists; if the message does not say that the result
  // is published, nothing has changed under the name. pre: the files in folder() are written, and durable if
  // Options::durable is set.
  void publish(const std::function<void()>& last_step = {});

 private:
  bool go_on_with_published();
  void lock(const std::string& folder, bool make);
  void trust_folder(const std::string& folder);
  void let_go();
  void settle_old() const;
  bool begin_plan();
  void go_on() const;
  void empty_folder() const;
  void note_replaced() const;
  void refuse_lower_layer();
  void rename_into_place() const;
  [[noreturn]] void fail_rename(const char* what, int error) const;
  std::string own_folder() const;
  void remove_replaced() const;
  void mark_published() const;
  void conclude(const std::function<void()>& last_step) const;
  [[noreturn]] void fail(const char* what, int error) const;
  [[noreturn]] void fail(const char* what, const std::string& why) const;

  std::string path_, parent_, staging_, old_, plan_;
  Options options_;
  bool resumes_ = false, published_ = false, began_anew_ = false;
  int fd_ = -1;     // of the folder that is made, locked
  HostLock hosts_;  // where other hosts do not see that lock
};

}  // namespace mckpt::impl
