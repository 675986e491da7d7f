// Conversions of the C interface: a Conversion with what its account and its run have said.
#include "mckpt/c_conversion.h"

#include <functional>
#include <map>
#include <type_traits>

#include "api/c_call.h"
#include "api/public_json.h"
#include "api/settings.h"
#include "options/field_list.h"
#include "options/results.h"

struct mckpt_conversion {
  mckpt::Conversion conversion;
  std::optional<mckpt::Account> account{};
  std::optional<mckpt::RunReport> run{};
  std::map<std::string, std::int64_t, std::less<>> numbers{};  // of both
};

namespace {

using mckpt::impl::c_given;
using mckpt::impl::c_result;
using mckpt::impl::c_status;
using mckpt::impl::c_written;

// Keeps the numbers of a result by name.
template <typename Result>
void keep_numbers(const Result& result, std::map<std::string, std::int64_t, std::less<>>& to) {
  mckpt::impl::fields(result, [&](const char* name, const auto& value, const char*) {
    if constexpr (std::is_integral_v<std::decay_t<decltype(value)>>) to.insert({name, value});
  });
}

void prove(mckpt_conversion& c, int threads, mckpt::Observer& observer) {
  if (c.account) return;
  keep_numbers(c.account.emplace(c.conversion.prove(threads, &observer)), c.numbers);
}

}  // namespace

mckpt_conversion* mckpt_plan(const char* kind, const char* const* settings, mckpt_error** error) {
  return c_result(error, static_cast<mckpt_conversion*>(nullptr), [&] {
    mckpt::impl::Settings s(settings);
    return new mckpt_conversion{mckpt::impl::plan_kind(c_given(kind, "kind"), s)};
  });
}

int mckpt_prove(mckpt_conversion* c, int threads, const mckpt_observer* observer, mckpt_error** error) {
  return c_status(error, [&] {
    mckpt::impl::CObserver to(observer);
    prove(*c, threads, to);
  });
}

int mckpt_run(mckpt_conversion* c, const char* const* settings, const mckpt_observer* observer,
              mckpt_error** error) {
  return c_status(error, [&] {
    mckpt::impl::Settings s(settings);
    mckpt::RunOptions options;
    read(s, options);
    s.refuse_rest();
    mckpt::impl::CObserver to(observer);
    prove(*c, options.threads, to);
    keep_numbers(c->run.emplace(c->conversion.run(options, &to)), c->numbers);
  });
}

char* mckpt_settings_json(mckpt_error** error) {
  return c_written(error, [](std::string& to) { to = mckpt::impl::field_list_json(); });
}

void mckpt_conversion_free(mckpt_conversion* c) { delete c; }

const char* mckpt_conversion_path(const mckpt_conversion* c) { return c->conversion.path().c_str(); }

int64_t mckpt_conversion_number(const mckpt_conversion* c, const char* name) {
  if (!name) return -1;
  auto number = c->numbers.find(std::string_view(name));
  return number != c->numbers.end() ? number->second : -1;
}

char* mckpt_conversion_json(const mckpt_conversion* c, mckpt_error** error) {
  return c_written(error,
                   [&](std::string& to) { mckpt::impl::write_json(to, c->conversion, c->account, c->run); });
}
