// Checks, findings, what was not read, and with --against each difference. Parts of a folder have the same
// fields.
#include "tools/answers/verify_json.h"

#include <string>
#include <vector>

#include "convert/compare/verify.h"
#include "io/json/json_writer.h"
#include "io/verify/verify.h"
#include "tools/render/findings.h"

namespace mckpt::impl {
namespace {

void write_differences(JsonWriter& json, const std::vector<Difference>& differences) {
  json.key("differences").begin_array();
  for (const Difference& d : differences) {
    json.begin_object().field("tensor", d.tensor).field("file", d.file).field("at", d.at);
    json.field("expected", d.expected).field("found", d.found);
    d.items < 0 ? json.null_field("items") : json.field("items", d.items);
    d.largest() ? json.field("largest", *d.largest()) : json.null_field("largest");
    json.end_object();
  }
  json.end_array();
}

// The checks, the findings and what was not read.
void write_report_json(JsonWriter& json, const VerifyReport& report) {
  json.key("checks").begin_array();
  for (const Check& c : report.checks) {
    json.begin_object()
        .field("name", c.name)
        .field("status", status_name(c.status))
        .field("count", c.count)
        .field("unseen", c.unseen);
    c.note.empty() ? json.null_field("note") : json.field("note", c.note);
    json.end_object();
  }
  json.end_array().key("findings");
  write_findings(json, report.findings);
  json.key("unread").begin_array();
  for (const NotRead& u : report.unread) {
    json.begin_object().field("path", u.path);
    const std::string why = u.why();
    why.empty() ? json.null_field("reason") : json.field("reason", why);
    json.end_object();
  }
  json.end_array();
}

void write_parts_json(JsonWriter& json, const std::vector<VerifiedPart>& parts) {
  json.key("parts").begin_array();
  for (const VerifiedPart& part : parts) {
    json.begin_object().field("path", part.path).field("ok", part.report.sound());
    write_report_json(json, part.report);
    if (!part.report.parts.empty()) write_parts_json(json, part.report.parts);
    json.end_object();
  }
  json.end_array();
}

}  // namespace

void write_verified_json(JsonWriter& json, const Verified& verified) {
  if (verified.equal) {
    json.field("equal", *verified.equal).field("differing_tensors", verified.report.differing());
    json.field("rounded", verified.report.rounded());
  }
  if (verified.as_card) json.field("as_card", *verified.as_card);
  write_report_json(json, verified.report);
  if (verified.equal) write_differences(json, verified.report.differences);
  if (!verified.report.parts.empty()) write_parts_json(json, verified.report.parts);
}

}  // namespace mckpt::impl
