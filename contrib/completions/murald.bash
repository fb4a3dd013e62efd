# Completion of murald for bash, which needs nothing else: `murald complete` knows the words.
# Goes to /usr/share/bash-completion/completions/murald.

_murald() {
  local word words=()
  # Names are told apart from what quotes them on the line.
  for word in "${COMP_WORDS[@]:1:COMP_CWORD}"; do
    word=${word//\\/}
    words+=("${word#[\"\']}")
  done
  COMPREPLY=()
  while IFS=$'\t' read -r word _; do
    case $word in
      :files) compopt -o filenames; mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "$2"); return ;;
      :directories) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -d -- "$2"); return ;;
      *) COMPREPLY+=("$(printf '%q' "$word")") ;;
    esac
  done < <("${COMP_WORDS[0]}" complete -- "${words[@]}" 2>/dev/null)
}

complete -F _murald murald
