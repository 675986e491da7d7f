// Device: the memory with the weights of a live model, and the few operations on bytes there. All of lib/live
// works through this interface, so that one loader, one exporter and one way to unshard serve the host's
// memory and a GPU's.
//
//   Memory   weights(), staging()     device bytes; and host bytes that move to and from the device fast
//   Lane     upload, scatter, ...     work in the order in which it is given, while the caller continues
//   Ranks    all_gather, exchange     between the devices of ranks, in the order of a lane
//
//   a lane    upload(block) | scatter(block's items) | download(window)      wait() returns when all three are done
//
// Addresses of device memory are u8*, but only a device's own functions may read or write there. There are
// two devices: HostDevice here, and the GPU in live/cuda/device.h.
#pragma once

#include <memory>
#include <span>

#include "core/base/int.h"
#include "core/items/item_cast.h"
#include "core/items/move.h"
#include "live/device/memory.h"

namespace mckpt::impl {

class Comm;

// A move between two places of a device's memory, with the cast of its values. The addresses point to its
// first items; strides count items of either side. A value, which does not own the memory.
struct ItemCopy {
  const u8* from = nullptr;
  u8* to = nullptr;
  i64 length = 0;
  MoveLoop inner = {}, outer = {};
  ItemCast cast;  // no_cast() of a type as wide as the items, if values stay as they are

  i64 items() const { return length * inner.count * outer.count; }
};

// A queue of work on a device. Work of one lane is done in order; work of two lanes may be done at the same
// time, unless one follows the other. A lane is used by one thread at a time. Errors of the device may be
// thrown late, by wait().
class Lane {
 public:
  virtual ~Lane() = default;  // waits for all work
  // The host side is staging memory, and must not be changed until the lane has done the copy.
  // From the host to the device, from the device to the host, and on the device; `zero` writes zeros.
  virtual void upload(std::span<const u8> from, u8* to) = 0;
  virtual void download(const u8* from, std::span<u8> to) = 0;
  virtual void copy(const u8* from, u8* to, i64 bytes) = 0;
  virtual void zero(u8* at, i64 bytes) = 0;
  // Carries out all copies, in any order. pre: the casts are checked; no two copies write the same item, and
  // none reads what another writes.
  virtual void scatter(std::span<const ItemCopy> copies) = 0;
  // Work that is given from now on begins when the other lane has done all work that it was given so far.
  virtual void follow(Lane& other) = 0;
  // Returns when all work is done. Throws the device's error, if there was one.
  virtual void wait() = 0;
  virtual bool done() = 0;  // whether wait() would return at once
};

// Collectives between the devices of ranks. Every rank calls the same functions in the same order. A rank
// that fails makes the others throw Error(kRanksFailed), or the watch over the ranks ends them.
class DeviceRanks {
 public:
  struct Part {
    int rank = 0;  // the rank that it goes to, or comes from; never this one
    u8* data = nullptr;
    i64 bytes = 0;
  };
  virtual ~DeviceRanks() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // `mine` may be the rank's own place in `all`, in every rank or in none. pre: `mine` has the same size in
  // all ranks.
  virtual void all_gather(Lane& lane, std::span<const u8> mine, std::span<u8> all) = 0;
  // Parts between the same two ranks arrive in the order in which they were sent.
  virtual void exchange(Lane& lane, std::span<const Part> sends, std::span<const Part> receives) = 0;
  // Waits for the lane, and notices a rank that is gone.
  virtual void wait(Lane& lane) = 0;
};

// A device of this process. It outlives everything that it makes. weights(), staging() and lane() are
// thread-safe.
class Device {
 public:
  virtual ~Device() = default;
  virtual const char* name() const = 0;  // torch's name of the device: "cpu", "cuda:0"
  virtual Memory& weights() = 0;         // the device's own memory
  virtual Memory& staging() = 0;         // memory of the host, for uploads and downloads
  // Whether staging memory is the device's own, so that bytes read into it need no upload.
  virtual bool is_host() const = 0;
  virtual std::unique_ptr<Lane> lane() = 0;
  // Collective over `comm`, which outlives what is returned.
  virtual std::unique_ptr<DeviceRanks> ranks(Comm& comm) = 0;
  // Loads the libraries that libtorch needs to work on this device's memory. Called before each tensor that
  // is made over that memory.
  virtual void load_torch() {}
};

// The process's own memory as a device: all work is done at once, by the thread that gives it.
class HostDevice final : public Device {
 public:
  const char* name() const override { return "cpu"; }
  HostMemory& weights() override { return weights_; }
  HostMemory& staging() override { return staging_; }
  bool is_host() const override { return true; }
  std::unique_ptr<Lane> lane() override;
  std::unique_ptr<DeviceRanks> ranks(Comm& comm) override;

 private:
  HostMemory weights_, staging_;
};

}  // namespace mckpt::impl
