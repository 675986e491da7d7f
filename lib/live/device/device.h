// Device: where the weights of a live model lie, and the few things that are done to bytes there. All of
// lib/live works through it, so that one loader, one exporter and one way to unshard serve the host's memory
// and a GPU's.
//
//   Memory   weights(), staging()     device bytes; and host bytes that move to and from the device fast
//   Lane     upload, scatter, ...     work in the order it is given, while the caller goes on
//   Ranks    all_gather, exchange     between the devices of ranks, in the order of a lane
//
// Addresses of device memory are u8*, but only a device's own functions may read or write there.
#pragma once

#include <memory>
#include <span>

#include "core/base/int.h"
#include "core/items/item_cast.h"
#include "core/items/move.h"
#include "live/device/memory.h"

namespace mckpt::impl {

class Comm;

// A move between two places of a device's memory, with what is done to its values. The addresses are those of
// its first items; strides count items of either side.
struct ItemCopy {
  const u8* from = nullptr;
  u8* to = nullptr;
  i64 length = 0;
  MoveLoop inner = {}, outer = {};
  ItemCast cast;  // the identity of a type as wide as the items, where values stay as they are

  i64 items() const { return length * inner.count * outer.count; }
};

// One thread at a time.
class Lane {
 public:
  virtual ~Lane() = default;  // waits
  // The host side is staging memory, and stays untouched until the lane has come that far.
  virtual void upload(std::span<const u8> from, u8* to) = 0;
  virtual void download(const u8* from, std::span<u8> to) = 0;
  virtual void copy(const u8* from, u8* to, i64 bytes) = 0;
  virtual void zero(u8* at, i64 bytes) = 0;
  // pre: checked casts; no two write the same item, and none reads what another writes.
  virtual void scatter(std::span<const ItemCopy> copies) = 0;
  // What is given from now on begins when the other lane has done what it was given so far.
  virtual void follow(Lane& other) = 0;
  // Returns when everything given has been done. Throws what went wrong there.
  virtual void wait() = 0;
  virtual bool done() = 0;  // whether wait() would return at once
};

// Between the devices of ranks. Every rank calls the same in the same order; a peer that fails shows as
// Error(kRanksFailed).
class DeviceRanks {
 public:
  struct Part {
    int rank = 0;  // whom it goes to, or comes from; never this one
    u8* data = nullptr;
    i64 bytes = 0;
  };
  virtual ~DeviceRanks() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // `mine` may be its own place in `all`, in every rank or in none.
  virtual void all_gather(Lane& lane, std::span<const u8> mine, std::span<u8> all) = 0;
  // Parts between the same two ranks arrive in the order in which they were sent.
  virtual void exchange(Lane& lane, std::span<const Part> sends, std::span<const Part> receives) = 0;
  // As the lane's own wait(), and notices a peer that is gone.
  virtual void wait(Lane& lane) = 0;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual const char* name() const = 0;  // as torch calls it: "cpu", "cuda"
  virtual Memory& weights() = 0;
  virtual Memory& staging() = 0;
  // Whether staging memory is the device's own, so that bytes read into it need no upload.
  virtual bool is_host() const = 0;
  virtual std::unique_ptr<Lane> lane() = 0;
  // Collective over `comm`, which outlives what is returned.
  virtual std::unique_ptr<DeviceRanks> ranks(Comm& comm) = 0;
  // Loads what libtorch needs to work on this device's memory. Called before each tensor that is made over it.
  virtual void load_torch() {}
};

// The process's own memory: everything is done at once, by the thread that asks.
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
