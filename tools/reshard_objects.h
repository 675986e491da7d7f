// What becomes of a checkpoint's objects when it is resharded: they go along, with the new grid in the args
// and in Megatron-Bridge's configuration; what the source has none of and Megatron asks for is made.
#pragma once

#include "convert/jobs/carried_record.h"
#include "convert/keys/fsdp_plan.h"
#include "convert/output/fsdp_folder.h"
#include "tools/reshard_source.h"

namespace mckpt {

class ReshardObjects {
 public:
  // All outlive this. `iteration`: the new one, if it changes.
  ReshardObjects(const ReshardSource& source, const FsdpRun& run, std::optional<i64> iteration,
                 const GlobalFlags& flags);

  // Into the file of rank 0, whose chunks are all there. Returns those that are copied as they are.
  std::vector<CarriedRecord> add_to(DcpLayout& layout);
  // Objects of the source that the result does not have.
  i64 left_out() const { return left_out_; }
  // New contents of files beside the data.
  const ChangedFiles& changed_files() const { return changed_; }

 private:
  void add_made(DcpLayout& layout, const std::string& name, std::string pickle);
  void add_missing(DcpLayout& layout);
  std::string with_grid(std::string args) const;
  void list_files();
  void tell_left_out();

  const ReshardSource& source_;
  const FsdpRun& run_;
  std::optional<i64> iteration_;
  const GlobalFlags& flags_;
  NameSet<std::string> there_;  // objects of the result
  ChangedFiles changed_;
  i64 left_out_ = 0;
};

}  // namespace mckpt
