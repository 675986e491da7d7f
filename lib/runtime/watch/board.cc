// Shared memory of System V, which needs no path that all ranks see. It is removed from the system as soon as
// it is made: Linux still lets other processes open it by its id while one process has it mapped, and it
// cannot be left behind.
#include "runtime/watch/board.h"

#include <pthread.h>
#include <sys/shm.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "core/base/error.h"

namespace mckpt::impl {
namespace {

// A text as atomic words, because two processes may use it at once. A reader may see half of a new text,
// until the next heartbeat.
constexpr std::size_t kTextWords = sizeof(Beat::Text) / 8;
using SharedText = std::array<std::atomic<u64>, kTextWords>;
static_assert(std::atomic<u64>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

// Word by word; no lock, because a stopped rank would hold it.
void store(SharedText& to, const Beat::Text& from) {
  std::array<u64, kTextWords> words;
  std::memcpy(words.data(), from.data(), from.size());
  for (std::size_t i = 0; i < kTextWords; i++) to[i].store(words[i], std::memory_order_relaxed);
}

Beat::Text load(const SharedText& from) {
  std::array<u64, kTextWords> words;
  for (std::size_t i = 0; i < kTextWords; i++) words[i] = from[i].load(std::memory_order_relaxed);
  Beat::Text to;
  std::memcpy(to.data(), words.data(), to.size());
  to.back() = 0;
  return to;
}

Beat::Text text_of(std::string_view text) {
  Beat::Text field = {};
  text.copy(field.data(), field.size() - 1);
  return field;
}

[[noreturn]] void refuse(int error) {
  throw Error(Code::kRanksFailed,
              cat("the ranks of this host cannot watch each other: no shared memory: ", std::strerror(error)))
      .help("`rank_timeout` 0 turns the watch off");
}

}  // namespace

bool Beat::same_activity(const Beat& other) const {
  return calls == other.calls && progress == other.progress && phase == other.phase &&
         waiting == other.waiting;
}

Beat beat_of(const Activity::Now& now) {
  return {.calls = now.calls,
          .progress = now.progress,
          .phase = text_of(now.phase),
          .waiting = text_of(now.waiting)};
}

struct alignas(64) Board::Place {
  pthread_mutex_t lives;
  std::atomic<int> begun, left, died;
  std::atomic<i64> number, calls, progress;
  SharedText phase, waiting;
};

struct alignas(64) Board::Shared {
  std::atomic<int> teller = -1, told = 0, status = 0;
};

Board::Board(i64 id, void* memory, int places)
    : id_(id), shared_(static_cast<Shared*>(memory)), places_(places) {}

Board::Board(Board&& other) noexcept
    : id_(other.id_), shared_(std::exchange(other.shared_, nullptr)), places_(other.places_) {}

Board::~Board() {
  if (shared_) shmdt(shared_);
}

Board::Place& Board::at(int place) const {
  return *std::launder(reinterpret_cast<Place*>(shared_ + 1) + place);
}

Board Board::make(int places) {
  int id = shmget(IPC_PRIVATE, sizeof(Shared) + static_cast<std::size_t>(places) * sizeof(Place), 0600);
  if (id < 0) refuse(errno);
  void* memory = shmat(id, nullptr, 0);
  int error = errno;
  shmctl(id, IPC_RMID, nullptr);
  if (memory == reinterpret_cast<void*>(-1)) refuse(error);
  new (memory) Shared;
  Board board(id, memory, places);
  pthread_mutexattr_t shared_and_robust;
  pthread_mutexattr_init(&shared_and_robust);
  pthread_mutexattr_setpshared(&shared_and_robust, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setrobust(&shared_and_robust, PTHREAD_MUTEX_ROBUST);
  for (int p = 0; p < places; p++) {
    auto* place = new (reinterpret_cast<Place*>(board.shared_ + 1) + p) Place{};
    pthread_mutex_init(&place->lives, &shared_and_robust);
  }
  pthread_mutexattr_destroy(&shared_and_robust);
  return board;
}

Board Board::open(i64 id, int places) {
  void* memory = shmat(static_cast<int>(id), nullptr, 0);
  if (memory == reinterpret_cast<void*>(-1)) refuse(errno);
  return Board(id, memory, places);
}

void Board::begin(int place) {
  pthread_mutex_lock(&at(place).lives);
  at(place).begun = 1;
}

void Board::write(int place, const Beat& beat) {
  Place& p = at(place);
  store(p.phase, beat.phase);
  store(p.waiting, beat.waiting);
  p.calls = beat.calls;
  p.progress = beat.progress;
  p.number++;
}

Beat Board::read(int place) const {
  const Place& p = at(place);
  return {p.number, p.calls, p.progress, load(p.phase), load(p.waiting)};
}

void Board::leave(int place) { at(place).left = 1; }
bool Board::has_left(int place) const { return at(place).left; }

bool Board::has_died(int place) {
  Place& p = at(place);
  if (p.left || p.died || !p.begun) return p.died;
  int result = pthread_mutex_trylock(&p.lives);
  if (result == EBUSY) return false;
  // The thread also ends, and drops the mutex, right after its rank has left: that is not a death.
  if (result == EOWNERDEAD && !p.left) p.died = 1;
  if (result == EOWNERDEAD) pthread_mutex_consistent(&p.lives);
  if (result == EOWNERDEAD || result == 0) pthread_mutex_unlock(&p.lives);
  return p.died;
}

int Board::teller() const { return shared_->teller; }

bool Board::become_teller(int place, int before) {
  return shared_->teller.compare_exchange_strong(before, place);
}

void Board::tell(int status) {
  shared_->status = status;
  shared_->told = 1;
}

std::optional<int> Board::told() const {
  return shared_->told ? std::optional<int>(shared_->status) : std::nullopt;
}

}  // namespace mckpt::impl
