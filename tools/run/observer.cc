// A phase of unknown length, such as the last steps of publishing, shows its name and time alone.
#include "tools/run/observer.h"

#include "tools/process/interrupt.h"
#include "tools/render/notes.h"
#include "tools/run/resume_help.h"

namespace mckpt::impl {

void RunObserver::begin(const std::string& phase, i64 bytes) {
  if (bytes > 0) return show(phase, bytes);
  end();
  phase_.emplace(activity_, (name_ = phase).c_str());
  say_phase(phase);
}

void RunObserver::show(const std::string& phase, i64 bytes) {
  end();
  progress_.emplace(flags_, phase, bytes);
  phase_.emplace(activity_, (name_ = phase).c_str(), progress_->counter());
}

void RunObserver::done(i64 bytes) {
  if (progress_ && bytes > 0) progress_->add(bytes);
  activity_.made_progress();
}

void RunObserver::end() {
  say_phase("");
  phase_.reset();
  progress_.reset();
}

bool RunObserver::stop() { return *stop_flag(); }

void RunObserver::staged(const std::string& path) { note_staged_output(path); }

void RunObserver::published() { note_published_output(); }

void RunObserver::note(const Note& note) {
  Notes notes;
  note.kind == Note::Kind::kWarning ? notes.warn(note.text) : notes.note(note.text);
  print_notes(flags_, notes);
}

}  // namespace mckpt::impl
