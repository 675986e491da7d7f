// The faults of a layer pattern: for each its name, sentence and remedy, and the message that shows the byte
// at which the pattern is wrong.
#include "core/hybrid/pattern_fault.h"
#include "core/base/error.h"

#include <algorithm>

namespace mckpt::impl {
namespace {

// A row of the table: the name is stable, the texts may be improved.
struct FaultInfo {
  PatternFault fault;
  std::string_view name, title, help;
};

constexpr FaultInfo kTable[] = {
    {PatternFault::kInvalidSymbol, "invalid_symbol", "this is not a layer symbol here",
     "layers are M G * D + - E, upper case and without blanks; '|' separates pipeline segments of the main part, '/' MTP parts, and [ ] make groups in the main part of the grouped dialect"},
    {PatternFault::kUnclosedGroup, "unclosed_group", "the group that begins here is not closed",
     "close the group with ']' before the next '|' or '/': a group is within one segment"},
    {PatternFault::kUnopenedGroup, "unopened_group", "no group is open here",
     "remove this ']' or open the group with '['"},
    {PatternFault::kEmptyGroup, "empty_group", "the group is empty",
     "remove the brackets or put layers between them"},
    {PatternFault::kNestedGroup, "nested_group", "a group cannot contain another",
     "close the first group before the second begins"},
    {PatternFault::kMoeNotLast, "moe_not_last_in_group", "an E must be the last layer of its group",
     "end the group after the E"},
    {PatternFault::kMixedAttention, "mixed_attention_kinds", "'*' cannot be in one model with 'D' or '+'",
     "use '*' alone, or 'D' and '+' without '*'; the MTP part is checked apart from the main part"},
    {PatternFault::kMtpNotIdentical, "mtp_not_identical", "the MTP parts are not identical",
     "repeat the first MTP part letter for letter, once for each depth"},
    {PatternFault::kGroupInMtp, "group_in_mtp", "MTP parts cannot have groups",
     "write the MTP part without brackets; a main part with groups may stay in front of it"},
    {PatternFault::kUnevenWithPipes, "uneven_split_with_pipes", "the pattern cuts its own stages with '|'",
     "leave out `first_stage_layers` and `last_stage_layers`, or the '|'"},
    {PatternFault::kVppWithoutPipes, "vpp_without_pipes",
     "virtual pipeline stages need a pattern that is cut with '|'",
     "cut the pattern into pp size x virtual stages segments, or leave out `vp_stage`"},
    {PatternFault::kSegmentsNotDivisible, "segments_not_divisible",
     "the segments do not divide by the pipeline size",
     "the number of segments is one more than the number of '|'; choose a `pp_size` that divides it"},
    {PatternFault::kSegmentOutOfRange, "segment_out_of_range", "there is no such segment",
     "rank r of virtual stage v runs segment v x pp size + r"},
    {PatternFault::kLayersNotDivisible, "layers_not_divisible",
     "the layers do not divide by the pipeline size",
     "choose another `pp_size`, cut the pattern with '|', or give the first and last stage their own counts"},
    {PatternFault::kMiddleNotDivisible, "middle_not_divisible",
     "the layers between the first and the last stage do not divide",
     "change `first_stage_layers` or `last_stage_layers`, or cut the pattern with '|'"},
    {PatternFault::kStageOutOfRange, "stage_out_of_range", "the stages ask for more layers than there are",
     "the layers of the first and of the last stage must fit into the pattern together"},
    {PatternFault::kSplitsGroup, "pipeline_splits_group", "a pipeline stage would begin inside this group",
     "cut the pattern with '|' between groups"},
    {PatternFault::kAssertion, "assertion", "the ratios make no pattern",
     "there must be at least one layer, both ratios must be from 0 to 1, and their sum at most 1"},
};

// Every fault has a row.
const FaultInfo& info(PatternFault fault) {
  return *std::find_if(std::begin(kTable), std::end(kTable),
                       [&](const FaultInfo& row) { return row.fault == fault; });
}

// The character at the byte.
std::string symbol_at(std::string_view pattern, i64 byte) {
  std::string_view rest = pattern.substr(byte);
  return escaped(rest.substr(0, std::max<std::size_t>(utf8_sequence(rest), 1)));
}

}  // namespace

std::string_view dialect_name(Dialect dialect) { return dialect == Dialect::kFlat ? "flat" : "grouped"; }
std::string_view fault_name(PatternFault fault) { return info(fault).name; }
std::string_view fault_title(PatternFault fault) { return info(fault).title; }
std::string_view fault_help(PatternFault fault) { return info(fault).help; }

// The title, with the symbol or the numbers that do not fit.
std::string fault_sentence(const PatternFailure& failure, std::string_view pattern) {
  std::string_view title = fault_title(failure.fault);
  if (failure.fault == PatternFault::kInvalidSymbol && failure.byte < std::ssize(pattern))
    return cat("'", symbol_at(pattern, failure.byte), "': ", title);
  return failure.detail.empty() ? std::string(title) : cat(title, ": ", failure.detail);
}

Error pattern_error(const PatternFailure& failure, std::string_view pattern) {
  std::string place = failure.byte < 0 ? "" : cat("byte ", failure.byte, ": ");
  Error e(Code::kBadPattern, cat("layer pattern: ", place, fault_sentence(failure, pattern), " (",
                                 fault_name(failure.fault), ")"));
  e.found(cat("'", escaped(pattern), "'")).help(fault_help(failure.fault));
  if (failure.byte >= 0) e.offset(failure.byte);
  return e;
}

void throw_pattern_error(const PatternFailure& failure, std::string_view pattern) {
  throw pattern_error(failure, pattern);
}

}  // namespace mckpt::impl
