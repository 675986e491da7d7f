// The program's use of the reports of a run: progress on stderr, signs of life for the watch over the ranks,
// notes, and the place of the unfinished result for an error's help. A signal asks the run to stop.
#pragma once

#include <optional>

#include "core/base/observer.h"
#include "runtime/comm/activity.h"
#include "tools/render/progress.h"

namespace mckpt::impl {

class RunObserver : public Observer {
 public:
  RunObserver(const GlobalFlags& flags, Activity& activity) : flags_(flags), activity_(activity) {}

  void begin(const std::string& phase, i64 bytes) override;
  void done(i64 bytes) override;
  void end() override;
  bool stop() override;
  void staged(const std::string& path) override;
  void published() override;
  void note(const Note& note) override;

 protected:
  // A phase with a line of progress, also where its length is not known (0).
  void show(const std::string& phase, i64 bytes);

 private:
  const GlobalFlags& flags_;
  Activity& activity_;
  std::optional<Progress> progress_;
  std::string name_;  // of the phase
  std::optional<Phase> phase_;
};

}  // namespace mckpt::impl
