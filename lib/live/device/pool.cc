#include "live/device/pool.h"

#include <algorithm>
#include <cassert>
#include <iterator>

namespace mckpt {

Pool::Pool(PoolMemory memory, i64 alignment) : memory_(std::move(memory)), alignment_(alignment) {}

Pool::~Pool() {
  assert(live_.empty());
  drop_slab();
}

void Pool::begin_pass() {
  assert(!in_pass_);
  as_traced_ = !trace_.empty() && make_slab();
  in_pass_ = true;
  pass_++;
  next_buffer_ = 0;
  events_.clear();
}

void Pool::end_pass() {
  assert(in_pass_);
  in_pass_ = false;
  if (as_traced_ && events_.size() == trace_.size()) {
    facts_.replayed_passes++;
    return;
  }
  facts_.traced_passes++;
  if (events_ == trace_) return;  // it was only that the slab was not free
  trace_ = std::move(events_);
  make_plan();
  if (slab_live_.empty()) drop_slab();
}

void Pool::make_plan() {
  std::vector<PoolLife> lives;
  for (std::size_t t = 0; t < trace_.size(); t++) {
    i64 now = static_cast<i64>(t);
    if (trace_[t].bytes > 0)
      lives.push_back({trace_[t].bytes, now, std::ssize(trace_)});
    else if (trace_[t].buffer >= 0)
      lives[static_cast<std::size_t>(trace_[t].buffer)].end = now;
  }
  plan_ = plan_pool(lives, alignment_);
  facts_.slab_bytes = plan_.slab_bytes;
  facts_.planned_live_bytes = plan_.live_bytes;
}

std::byte* Pool::allocate(i64 bytes) {
  if (bytes <= 0) return nullptr;
  std::byte* buffer = planned_place(bytes);
  bool in_slab = buffer != nullptr;
  if (!in_slab) buffer = take(bytes);
  if (in_pass_) note({bytes, next_buffer_});
  live_[buffer] = {bytes, in_pass_ ? pass_ : 0, in_pass_ ? next_buffer_++ : -1, in_slab};
  facts_.live_bytes += bytes;
  facts_.most_live_bytes = std::max(facts_.most_live_bytes, facts_.live_bytes);
  return buffer;
}

void Pool::free(std::byte* buffer) {
  if (!buffer) return;
  auto found = live_.find(buffer);
  if (found == live_.end()) throw Error(Code::kInternal, "a buffer is freed that is not live");
  Buffer freed = found->second;
  live_.erase(found);
  facts_.live_bytes -= freed.bytes;
  if (in_pass_) note({0, freed.pass == pass_ ? freed.index : -1});
  if (freed.in_slab)
    slab_live_.erase(buffer - slab_);
  else
    give_back(buffer, freed.bytes);
}

void Pool::note(Event event) {
  as_traced_ = as_traced_ && events_.size() < trace_.size() && trace_[events_.size()] == event;
  events_.push_back(event);
}

// The place that the plan has for the next request, null where it has none for it.
std::byte* Pool::planned_place(i64 bytes) {
  if (!in_pass_ || !as_traced_ || events_.size() >= trace_.size()) return nullptr;
  if (trace_[events_.size()] != Event{bytes, next_buffer_}) return nullptr;
  i64 offset = plan_.offsets[static_cast<std::size_t>(next_buffer_)];
  return reserve(offset, bytes) ? slab_ + offset : nullptr;
}

// Takes that part of the slab. False when a buffer of an earlier pass lies there.
bool Pool::reserve(i64 offset, i64 bytes) {
  auto behind = slab_live_.lower_bound(offset);
  auto in_the_way = slab_live_.end();
  if (behind != slab_live_.end() && behind->first < offset + bytes) in_the_way = behind;
  if (behind != slab_live_.begin() && std::prev(behind)->second > offset) in_the_way = std::prev(behind);
  if (in_the_way == slab_live_.end()) {
    slab_live_.emplace_hint(behind, offset, offset + bytes);
    return true;
  }
  if (live_.at(slab_ + in_the_way->first).pass == pass_)
    throw Error(Code::kInternal, "the plan of a pool lets two live buffers overlap")
        .found(cat("[", offset, ", ", offset + bytes, ") and [", in_the_way->first, ", ", in_the_way->second,
                   ")"));
  return false;
}

// Whether there is a slab of the plan's size. One in which something lives stays as it is.
bool Pool::make_slab() {
  if (slab_bytes_ == plan_.slab_bytes) return true;
  if (!slab_live_.empty()) return false;
  drop_slab();
  slab_ = take(plan_.slab_bytes);
  slab_bytes_ = plan_.slab_bytes;
  return true;
}

void Pool::drop_slab() {
  if (slab_) give_back(slab_, slab_bytes_);
  slab_ = nullptr;
  slab_bytes_ = 0;
}

std::byte* Pool::take(i64 bytes) {
  std::byte* memory = memory_.allocate(bytes);
  facts_.held_bytes += bytes;
  facts_.most_held_bytes = std::max(facts_.most_held_bytes, facts_.held_bytes);
  return memory;
}

void Pool::give_back(std::byte* memory, i64 bytes) {
  memory_.release(memory, bytes);
  facts_.held_bytes -= bytes;
}

}  // namespace mckpt
