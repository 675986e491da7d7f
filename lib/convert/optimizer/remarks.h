// Remarks: the content that is looked at and the findings so far, with words that all parts of the lint use.
// Every question is about parameters that are alike: of one kind (vectors, matrices), or of one class, whose
// names differ in the numbers of layers and experts alone. A run that decides something on purpose decides it
// for all of these.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "convert/optimizer/content.h"
#include "core/base/error_code.h"
#include "io/store/finding.h"

namespace mckpt::impl {

using Trained = OptimizerContent::Parameter;
using TrainedGroup = OptimizerContent::Group;
using TrainedParameters = std::vector<const Trained*>;

inline constexpr std::size_t kMostNamed = 4;

bool has_part(std::string_view text, std::string_view part);
std::optional<double> number_of(const std::string& text);
// Norms and biases, by their shape or name.
bool is_vector(const Trained& parameter);
bool is_expert(const Trained& parameter);
// The embedding or the output layer, which may have a learning rate of their own.
bool is_end(const Trained& parameter);
// --apply-wd-to-qk-layernorm lets all of these decay.
bool is_query_or_key_norm(const Trained& parameter);
// A parameter without a name.
bool is_numbered(const Trained& parameter);
// The name without its numbers; of numbered parameters the shape.
std::string class_of(const Trained& parameter);
// " has" or " have", and likewise.
std::string_view of_count(std::size_t count, std::string_view one, std::string_view several);

class Remarks {
 public:
  explicit Remarks(const OptimizerContent& content_) : content(content_) {}

  // In natural order.
  TrainedParameters where(const std::function<bool(const Trained&)>& wanted) const;
  // A warning about these parameters; none for no parameter.
  void add(Code code, const TrainedParameters& of, std::string_view message, const char* help);
  // A warning about groups.
  void add(std::string message, const char* help);

  const OptimizerContent& content;
  std::vector<Finding> found{};
};

// The parts of the lint, each of which adds its remarks.
void remark_decay(Remarks& to);
void remark_experts(Remarks& to);
void remark_options(Remarks& to);
void remark_states(Remarks& to);

}  // namespace mckpt::impl
