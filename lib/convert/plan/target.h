// Target: one kind of result, and plan(), which makes a conversion of an opened source and a target. The
// frame of planning is written here once:
//
//   opened  -->  make(opened) = target  -->  sources, sums, damage and notes of both  -->  identity  -->  Conversion
//
// A target is made of the opened source and its options. Its constructor lays the result out: from there on
// all sizes are final. It pairs the chunks of the two sides (job), says what the proof may expect, and keeps
// the layout. When the data are written, the target writes the frame: every byte that is not of a tensor.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "convert/plan/conversion.h"
#include "convert/plan/source_identity.h"
#include "io/output/plan_identity.h"

namespace mckpt::impl {

class OutputFiles;
class SafetensorsLayout;
class WrittenSums;

// Where a frame is written: by rank 0, after all tasks of all ranks are carried out.
struct FramePlace {
  OutputFiles& out;  // the files of the conversion, in `folder`
  const std::string& folder;
  bool durable = true;
  const WrittenSums& sums;  // of all ranks
  const FsdpFolder::Beside& beside;

  void write_beside() const;
};

// Text of all that decides the bytes of a result. The parts that a target leaves empty are filled from the
// source's files and the files beside the tensors.
struct TargetIdentity {
  std::optional<PlanIdentity> settings{};  // none: the result is not resumed
  SourceIdentity source{}, beside{};
  std::string mapping{}, result{};
};

// The target of one conversion. The members of Planned are moved out of it into the conversion, which keeps
// the target.
class Target : public Planned {
 public:
  virtual ~Target() = default;
  // The order matters: the file by which a reader recognizes a complete checkpoint is written last. Throws
  // what writing throws.
  virtual void write_frame(const FramePlace& to) const = 0;
  // Whether the frame of a single file has sums of its data.
  virtual bool has_sums_of_data() const { return false; }

  TargetIdentity identified;
  const Store* read = nullptr;         // whose files the job reads, if it is a view on the opened store
  std::vector<std::string> folders{};  // that are read, where these are not those that were opened
  // Whose objects that are files of their own are copied; null: nobody's.
  const Store* object_files = nullptr;
};

using MakeTarget = std::function<std::unique_ptr<Target>(Opened& opened)>;
// Throws what making the target throws.
Conversion plan(Opened opened, const MakeTarget& make);

// The frame of results with these layouts.
void write_frame(const DcpLayout& layout, const FramePlace& to);
void write_frame(const SafetensorsLayout& layout, const FramePlace& to);

}  // namespace mckpt::impl
