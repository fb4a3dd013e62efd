# Completes murald's commands in bash, without other packages. `murald complete` prints the words.
# Goes to /usr/share/bash-completion/completions/murald.

# Prints a word of the line without its quotes.
_murald_plain() {
  local word=$1
  case $word in
    \"* | \'*) word=${word#[\"\']} && word=${word%[\"\']} ;;
  esac
  printf '%s' "${word//\\/}"
}

_murald() {
  local at word before words=() joined=
  # Bash splits words at = and at :. A flag and its value are two words, but both sides of a : are one.
  for ((at = 1; at <= COMP_CWORD; at++)); do
    word=${COMP_WORDS[at]}
    if [[ $word == = && ${COMP_WORDS[at - 1]} == --* ]]; then
      ((at < COMP_CWORD)) || words+=('')
    elif [[ $at -gt 1 && ($word == : || $joined) ]]; then
      [[ $word == : ]] && joined=1 || joined=
      words[-1]+=$(_murald_plain "$word")
    else
      words+=("$(_murald_plain "$word")")
    fi
  done
  # The line already has the part before the last colon.
  before=${words[-1]%"${words[-1]##*:}"}
  [[ $COMP_WORDBREAKS == *:* ]] || before=
  COMPREPLY=()
  while IFS=$'\t' read -r word _; do
    case $word in
      :files) compopt -o filenames; mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "${words[-1]}") ;;
      :directories) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -d -- "${words[-1]}") ;;
      *) COMPREPLY+=("${word#"$before"}") ;;
    esac
  done < <("${COMP_WORDS[0]}" complete -- "${words[@]}" 2>/dev/null)
  # With this option, readline quotes other names as it quotes file names.
  for word in "${COMPREPLY[@]}"; do
    [[ $word != *[!a-zA-Z0-9_.,:@%+/=-]* ]] || { compopt -o filenames; break; }
  done
}

complete -F _murald murald
