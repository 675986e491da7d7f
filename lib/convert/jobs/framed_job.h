// FramedJob: what all jobs share that write the chunks of a DCP checkpoint: each chunk stands in the zip
// records of its own .pt file.
#pragma once

#include <algorithm>

#include "io/copy/job.h"
#include "io/dcp/layout.h"

namespace mckpt {

class FramedJob : public CopyJob {
 public:
  Frame frame(const Region& region) const override {
    if (!framed(region)) return {};
    return {std::ssize(frame_of(region).head()), frame_of(region).tail_bytes()};
  }
  void write_head(const Region& region, std::span<u8> to) const override {
    std::ranges::copy(frame_of(region).head(), to.begin());
  }
  void write_tail(const Region& region, u32 crc32, std::span<u8> to) const override {
    frame_of(region).write_tail(crc32, to);
  }

  // Keys of the layout.
  i32 target_tensor(const Region& region) const override {
    return framed(region) ? layout_->chunk(region.tensor).key : -1;
  }

 protected:
  // Null when chunks are only compared with. A destination's `tensor` is the number of its chunk in the
  // layout; -1: it is no chunk and has no frame.
  explicit FramedJob(const DcpLayout* layout) : layout_(layout) {}

 private:
  bool framed(const Region& region) const { return layout_ && region.tensor >= 0; }
  const DcpTensorFrame& frame_of(const Region& region) const { return *layout_->chunk(region.tensor).frame; }

  const DcpLayout* layout_;
};

}  // namespace mckpt
