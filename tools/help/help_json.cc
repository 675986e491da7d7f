// Writes the rows of help pages field by field.
#include "tools/help/help_json.h"

#include "tools/help/help_page.h"
#include "tools/render/answer_json.h"

namespace mckpt::impl {
namespace {

void write_strings(JsonWriter& json, const char* name, const std::vector<std::string>& values) {
  json.key(name).begin_array();
  for (const std::string& value : values) json.value(value);
  json.end_array();
}

void write_argument(JsonWriter& json, const HelpPage::Row& row) {
  json.begin_object().field("name", row.value).field("takes", takes_name(row.takes()));
  write_strings(json, "words", row.words);
  json.key("words_after").begin_array();
  for (const auto& [first, words] : row.words_after) {
    json.begin_object().field("first", first);
    write_strings(json, "words", words);
    json.end_object();
  }
  json.end_array();
  json.field("required", row.required).field("several", row.several).field("help", row.help).end_object();
}

void write_option(JsonWriter& json, const HelpPage::Row& row) {
  json.begin_object().field("heading", row.heading);
  write_strings(json, "names", row.names);
  write_strings(json, "other_names", row.others);
  row.value.empty() ? json.null_field("value") : json.field("value", row.value);
  json.field("takes", takes_name(row.takes())).field("optional_value", row.optional_value);
  write_strings(json, "words", row.words);
  row.needs.empty() ? json.null_field("needs") : json.field("needs", row.needs);
  json.field("several", row.several).field("common", row.common).field("help", row.help).end_object();
}

}  // namespace

void write_help_json(Output& out, std::span<const HelpPage> pages) {
  AnswerJson json(out);
  json.begin_answer("help", true).key("commands").begin_array();
  for (const HelpPage& page : pages) {
    json.begin_object()
        .field("name", page.command)
        .field("summary", page.summary)
        .field("usage", page.usage());
    json.key("arguments").begin_array();
    for (const HelpPage::Row* row : page.arguments()) write_argument(json, *row);
    json.end_array().key("options").begin_array();
    for (const HelpPage::Row* row : page.options()) write_option(json, *row);
    json.end_array();
    write_strings(json, "examples", page.examples);
    json.end_object();
  }
  json.end_array();
  json.end_answer();
}

}  // namespace mckpt::impl
