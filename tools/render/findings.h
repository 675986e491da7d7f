// What a reader found odd or wrong, told on stderr by commands whose answer is something else.
#pragma once

#include "io/store/store.h"
#include "io/file/json_writer.h"
#include "tools/render/output.h"

namespace mckpt {

// Whether nothing is wrong; oddities do not count.
bool is_sound(const Store& store);

// Whether something is wrong with single records, behind which the rest of a checkpoint can be read.
bool is_of_records(const Finding& finding);

// Throws the first problem of the list as an error, with a count of the rest; oddities pass. What is wrong is
// not converted: the result would look sound.
void require_sound(std::span<const Finding> findings, const std::string& root);

// The same, and the other findings are told before it.
void require_sound(const GlobalFlags& flags, std::span<const Finding> findings, const std::string& root);

// Turns problems of the named codes ("MC1315") into oddities: the user wants them taken as they are. Throws
// kUsage for a code of which nothing right can come.
void accept(std::vector<Finding>& findings, std::span<const std::string> codes);

// Tells findings on stderr, the first of them and a count of the rest. `told`: one that is told elsewhere.
void tell_findings(const GlobalFlags& flags, std::span<const Finding> findings, const std::string& root,
                   const Finding* told = nullptr);

// "problem[MC1107]: file: tensor 'x': message"
std::string finding_line(bool color, const Finding& finding);

// An array of objects, as in `inspect` (problems) and `verify` (findings).
void write_findings(JsonWriter& json, std::span<const Finding> findings);

// Tells the first findings on stderr and counts the rest. kNo when anything is wrong, kOk otherwise.
Exit report_findings(const GlobalFlags& flags, const Store& store);

}  // namespace mckpt
