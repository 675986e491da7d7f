// StoreView: a store that reads through another one. All that a view does not override is the source's:
//
//   class Shaped : public StoreView        dims(), chunk_count(), chunk(), resolve()
//                                          names, types, objects, sums and checks are the source's
//
// Root, files, format, ranks and facts are the source's from the beginning. Objects and findings are lists
// that a view takes over with take_objects() and take_findings(), or leaves out: who opened the source judged
// it.
#pragma once

#include <memory>
#include <utility>

#include "io/store/store.h"

namespace mckpt::impl {

// As thread-safe as its source.
class StoreView : public Store {
 public:
  const Store& source() const { return *source_; }

  i64 tensor_count() const override { return source_->tensor_count(); }
  std::string_view name(i64 t) const override { return source_->name(t); }
  DType dtype(i64 t) const override { return source_->dtype(t); }
  std::span<const i64> dims(i64 t) const override { return source_->dims(t); }
  i64 chunk_count(i64 t) const override { return source_->chunk_count(t); }
  Chunk chunk(i64 t, i64 index) const override { return source_->chunk(t, index); }
  ChunkData resolve(i64 t, i64 index) const override { return source_->resolve(t, index); }
  std::shared_ptr<const PickleValue> object(i64 index) const override { return source_->object(index); }
  void each_checksum(const std::function<void(const Checksum&)>& visit) const override {
    source_->each_checksum(visit);
  }
  std::optional<std::vector<Finding>> check(int threads) const override { return source_->check(threads); }

 protected:
  // The view owns the source, alone or with others.
  explicit StoreView(std::shared_ptr<const Store> source) : source_(std::move(source)) {
    describe_as(*source_);
  }
  // pre: the source outlives the view.
  explicit StoreView(const Store& source) : source_(std::shared_ptr<const Store>(), &source) {
    describe_as(source);
  }

  void take_objects() { objects_ = source_->objects(); }
  void take_findings() { findings_ = source_->findings(); }

 private:
  std::shared_ptr<const Store> source_;
};

}  // namespace mckpt::impl
